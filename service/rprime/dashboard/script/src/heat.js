// The confusion heat map, which the server drew: a chosen cell says what it costs.
import { chosen as asked, remember } from "./address.js";
import { count, decimal, items, percent } from "./numbers.js";
import { hideTip, showTip } from "./tips.js";

const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const SVG = "http://www.w3.org/2000/svg";

export function startHeat(report) {
  const source = report.querySelector("#charts");
  const map = report.querySelector("svg[data-cell]");
  if (!source || !map) return;
  const charts = JSON.parse(source.textContent);
  const panel = report.querySelector("[data-cost]");
  const [left, top, cell] = ["left", "top", "cell"].map((name) => Number(map.dataset[name]));
  const [rows, columns] = [charts.labels.length, charts.labels.length + (charts.unclassified ? 1 : 0)];
  const nameOf = (j) => charts.labels[j] ?? "unclassified";
  const ring = document.createElementNS(SVG, "rect");
  for (const [name, value] of Object.entries({ width: cell, height: cell, class: "ring" })) ring.setAttribute(name, value);
  map.append(ring);

  const cellAt = ({ clientX, clientY }) => {
    const box = map.getBoundingClientRect();
    const scale = map.viewBox.baseVal.width / box.width;
    const [x, y] = [(clientX - box.left) * scale - left, (clientY - box.top) * scale - top].map((place) => Math.floor(place / cell));
    return x >= 0 && y >= 0 && x < columns && y < rows ? [x, y] : null;
  };
  const describe = ([j, i]) => {
    const number = charts.counts[i][j];
    const share = (whole) => percent(whole ? number / whole : 0);
    return [
      i === j ? `${nameOf(i)}, right` : `${nameOf(i)} \u2192 ${nameOf(j)}`,
      charts.weighted ? `weight ${count(number)}` : items(number),
      `${share(charts.support[i])} of the true class`,
      ...(j < rows ? [`${share(charts.predicted[j])} of its predictions`] : []),
    ];
  };
  let chosen = largest(charts, rows, columns);
  const choose = ([j, i]) => {
    chosen = [Math.min(Math.max(j, 0), columns - 1), Math.min(Math.max(i, 0), rows - 1)];
    ring.setAttribute("x", left + cell * chosen[0] - 1);
    ring.setAttribute("y", top + cell * chosen[1] - 1);
    showCost(panel, describe(chosen), costsOf(charts, chosen[1], chosen[0]));
  };
  const chooseToStay = (place) => {
    choose(place);
    remember({ cell: `${chosen[1]},${chosen[0]}` });
  };
  map.addEventListener("pointermove", (event) => {
    const place = cellAt(event);
    if (place && event.pointerType === "mouse") showTip(describe(place), event);
    else hideTip();
  });
  map.addEventListener("pointerleave", hideTip);
  map.addEventListener("click", (event) => {
    const place = cellAt(event);
    if (place) chooseToStay(place);
  });
  map.setAttribute("tabindex", "0");
  map.setAttribute("role", "application");
  map.addEventListener("keydown", (event) => {
    const step = STEPS[event.key];
    if (!step) return;
    event.preventDefault();
    chooseToStay([chosen[0] + step[0], chosen[1] + step[1]]);
  });
  const [row, column] = asked("cell")?.split(",").map(Number) ?? [];
  choose(row < rows && column < columns ? [column, row] : chosen);
}

/** The cell with most errors. */
function largest(charts, rows, columns) {
  let [worst, place] = [0, [0, 0]];
  for (let i = 0; i < rows; i += 1) {
    for (let j = 0; j < columns; j += 1) {
      if (i !== j && charts.counts[i][j] > worst) [worst, place] = [charts.counts[i][j], [j, i]];
    }
  }
  return place;
}

/** What the items of a cell cost: [name, amount] pairs; nothing where they are right. */
function costsOf(charts, i, j) {
  const number = charts.counts[i][j];
  if (i === j || !number) return [];
  const silent = j === charts.labels.length;
  const overall = charts.costs.overall.map((index) => [
    index.name,
    number * (silent ? index.silent[i] : index.right[i] - index.wrong[j]),
  ]);
  if (silent) return overall;
  const ofClasses = charts.costs.per_class.flatMap((index) => [
    [`${index.name} of ${charts.labels[i]}`, number * index.missed[i]],
    [`${index.name} of ${charts.labels[j]}`, number * index.taken[j]],
  ]);
  return [...overall, ...ofClasses];
}

const element = (tag, text, properties = {}) => Object.assign(document.createElement(tag), { textContent: text, ...properties });

function showCost(panel, [title, ...facts], costs) {
  panel.hidden = false;
  const known = costs.filter(([, cost]) => Number.isFinite(cost));
  panel.replaceChildren(element("h3", title), ...facts.map((fact) => element("p", fact)));
  if (!known.length) return;
  const table = document.createElement("table");
  table.append(element("caption", "If this cell were right (approximate):"));
  const body = table.createTBody();
  for (const [name, cost] of known) {
    const row = body.insertRow();
    row.append(element("th", name, { scope: "row" }), element("td", cost > 0 ? `+${decimal(cost)}` : decimal(cost), { className: "n" }));
  }
  panel.append(table);
}
