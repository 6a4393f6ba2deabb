// What every page has: the switch of colours, definitions, and the filters of lists.
import { startCatalog } from "./catalog.js";
import { startCopyLink } from "./copy.js";
import { startDefinitions } from "./definitions.js";
import { startFilters } from "./filters.js";
import { startTheme } from "./switch.js";

startTheme();
startDefinitions();
startCatalog();
startFilters();
startCopyLink();
