// What only pages with charts load, since the library that draws them is large.
import { startEvaluator } from "./evaluator.js";
import { drawModel } from "./model.js";
import { drawReport } from "./report.js";

startEvaluator();
drawReport(document);
drawModel();
