import { startCatalog } from "./catalog.js";
import { startDefinitions } from "./definitions.js";
import { startEvaluator } from "./evaluator.js";
import { drawModel, startFilters } from "./model.js";
import { drawReport } from "./report.js";
import { startTheme } from "./switch.js";

startTheme();
startDefinitions();
startEvaluator();
startCatalog();
drawReport(document);
startFilters();
drawModel();
