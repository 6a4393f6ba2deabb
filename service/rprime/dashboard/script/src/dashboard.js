// What the pages do with a script: colours, definitions, filters, hover, the evaluator.
import { startCatalog } from "./catalog.js";
import { startCopyCommands, startCopyLink } from "./copy.js";
import { startDefinitions } from "./definitions.js";
import { startEvaluator } from "./evaluator.js";
import { startFilters } from "./filters.js";
import { startFirst } from "./first.js";
import { startHeat } from "./heat.js";
import { startTheme } from "./switch.js";
import { startChoice, startTips } from "./tips.js";

startTheme();
startDefinitions();
startCatalog();
startFilters();
startCopyLink();
startCopyCommands();
startFirst();
startTips();
startChoice();
startEvaluator();
startHeat(document);
