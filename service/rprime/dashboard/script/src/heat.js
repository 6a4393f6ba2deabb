// The confusion heat map: shares shade the cells, a chosen cell says what it costs.
import { chosen as asked, remember } from "./address.js";
import { brief, clipped, count, decimal, items, percent } from "./numbers.js";
import { mixed, plot, tooltip } from "./plot.js";

const LARGEST_CELL = 56;
const LINE = 13;

/** The table: rows and columns of numbers, the last column without a prediction, if there is one. */
function tableOf({ labels, counts, unclassified }) {
  const shown = [...labels.keys()];
  const silent = labels.length;
  return { rows: shown, columns: unclassified ? [...shown, silent] : shown, at: (i, j) => counts[i][j], silent };
}

function shareOf(charts, mode, i, j, number) {
  const whole = mode === "column" && j < charts.labels.length ? charts.predicted[j] : charts.support[i];
  return whole ? number / whole : 0;
}

export function drawHeat(element, charts, report) {
  const table = tableOf(charts);
  const nameOf = (j) => (j === table.silent ? "unclassified" : charts.labels[j]);
  const modes = report.querySelector("[data-heat-modes]");
  const known = [...modes.children].map((button) => button.dataset.mode);
  let mode = known.find((name) => name === asked("cells")) ?? known[0];
  let chosen = [0, 0];
  let worst = 0;
  table.rows.forEach((i, y) =>
    table.columns.forEach((j, x) => {
      if (i !== j && table.at(i, j) > worst) [worst, chosen] = [table.at(i, j), [x, y]];
    }),
  );

  const [row, column] = asked("cell")?.split(",").map(Number) ?? [];
  if (row < table.rows.length && column < table.columns.length) chosen = [column, row];

  const build = (colours, width) => {
    const longest = Math.max(...table.columns.map((j) => Math.min(nameOf(j).length, 12)));
    const side = Math.min(20 + 7 * longest, width * 0.28);
    const [supports, predictions] = [charts.support.map(count), charts.predicted.map(count)];
    const widest = Math.max(...[...supports, ...predictions].map((text) => text.length));
    const margin = 14 + 6 * widest;
    const cell = Math.min((width - side - margin) / table.columns.length, LARGEST_CELL);
    const turned = longest * 7 > cell;
    const top = turned ? side : 28;
    const data = [];
    table.rows.forEach((i, y) =>
      table.columns.forEach((j, x) => {
        const number = table.at(i, j);
        const share = shareOf(charts, mode, i, j, number);
        const kind = i === j ? "right" : "wrong";
        const [lightest, darkest] = charts.tints;
        const tint = lightest + (darkest - lightest) * share ** charts.powers[kind];
        const fill = number ? mixed(colours.surface, colours[kind], tint) : mixed(colours.surface, colours.track, 0.5);
        data.push({ value: [x, y, number], share, fill });
      }),
    );
    for (const one of data) one.text = cell >= 27 && one.value[2] ? textIn(one, cell) : "";
    const names = {
      type: "category",
      axisLine: { show: false },
      axisTick: { show: false },
      // As many names as stand beside each other.
      axisLabel: { interval: Math.ceil(LINE / cell) - 1, color: colours["ink-soft"], fontSize: 12, formatter: (name) => clipped(name, 12) },
    };
    const bottom = { ...names.axisLabel, fontSize: 11, rotate: 6.5 * widest > cell ? 90 : 0 };
    return {
      height: top + cell * table.rows.length + (bottom.rotate ? margin : 28),
      grid: { left: side, top, width: cell * table.columns.length, height: cell * table.rows.length },
      // Opposite the names stand the predictions and the items of the classes.
      xAxis: [
        { ...names, position: "top", data: table.columns.map(nameOf), axisLabel: { ...names.axisLabel, rotate: turned ? 90 : 0 } },
        { ...names, position: "bottom", data: table.columns.map((j) => predictions[j] ?? ""), axisLabel: bottom },
      ],
      yAxis: [
        { ...names, inverse: true, data: table.rows.map(nameOf) },
        { ...names, inverse: true, position: "right", data: supports, axisLabel: { ...names.axisLabel, fontSize: 11 } },
      ],
      tooltip: tooltip(colours, ({ data: one }) => describe(one.value[0], one.value[1])),
      series: {
        type: "custom",
        data,
        renderItem: (_, api) => {
          const [x, y] = [api.value(0), api.value(1)];
          const [cx, cy] = api.coord([x, y]);
          const one = data[y * table.columns.length + x];
          const size = Math.max(cell - 2, 1);
          const isChosen = x === chosen[0] && y === chosen[1];
          return {
            type: "rect",
            z2: isChosen ? 10 : 0,
            shape: { x: cx - size / 2, y: cy - size / 2, width: size, height: size, r: Math.min(4, size / 6) },
            style: { fill: one.fill, stroke: isChosen ? colours.ink : "none", lineWidth: 2 },
            textContent: { style: { text: one.text, fill: colours.ink, fontSize: cell < 34 ? 10 : 12 } },
            textConfig: { position: "inside" },
          };
        },
      },
    };
  };

  const textIn = ({ value, share }, cell) => {
    const texts = mode === "count" ? [count(value[2]), brief(value[2])] : [(100 * share).toFixed(1), (100 * share).toFixed(0)];
    return texts.find((text) => text.length * 6.4 < cell) ?? "";
  };

  const describe = (x, y) => {
    const [i, j] = [table.rows[y], table.columns[x]];
    const number = table.at(i, j);
    return [
      i === j ? `${nameOf(i)}, right` : `${nameOf(i)} \u2192 ${nameOf(j)}`,
      items(number),
      `${percent(shareOf(charts, "row", i, j, number))} of the true class`,
      ...(j < charts.labels.length ? [`${percent(shareOf(charts, "column", i, j, number))} of its predictions`] : []),
    ];
  };

  const { chart, redraw } = plot(element, build);
  const tell = () => {
    const [x, y] = chosen;
    showCost(report.querySelector("[data-cost]"), table.at(table.rows[y], table.columns[x]), describe(x, y), costsOf(charts, table, table.rows[y], table.columns[x]));
  };
  const choose = (x, y) => {
    chosen = [
      Math.min(Math.max(x, 0), table.columns.length - 1),
      Math.min(Math.max(y, 0), table.rows.length - 1),
    ];
    redraw();
    tell();
  };
  const chooseToStay = (x, y) => {
    choose(x, y);
    remember({ cell: `${chosen[1]},${chosen[0]}` });
  };
  chart.on("click", ({ value }) => chooseToStay(value[0], value[1]));
  element.tabIndex = 0;
  element.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (!step) return;
    event.preventDefault();
    chooseToStay(chosen[0] + step[0], chosen[1] + step[1]);
  });
  const press = () => {
    for (const button of modes.children) button.setAttribute("aria-pressed", button.dataset.mode === mode);
    report.querySelector("[data-heat-whole]").textContent = mode === "column" ? "the predictions" : "the true class";
  };
  press();
  modes.hidden = false;
  modes.addEventListener("click", ({ target }) => {
    if (!target.dataset.mode) return;
    mode = target.dataset.mode;
    press();
    remember({ cells: mode === known[0] ? "" : mode });
    redraw();
  });
  report.querySelector("[data-heat-note]").textContent = charts.note;
  tell();
}

/** What the items of a cell cost: [name, amount] pairs; nothing where they are right. */
function costsOf(charts, table, i, j) {
  const number = table.at(i, j);
  if (i === j || !number) return [];
  const silent = j === table.silent;
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

function showCost(panel, number, [title, ...facts], costs) {
  panel.hidden = false;
  const known = costs.filter(([, cost]) => Number.isFinite(cost));
  panel.replaceChildren(element("h3", title), ...facts.map((fact) => element("p", fact)));
  if (!known.length) return;
  const table = document.createElement("table");
  table.append(element("caption", `If ${number === 1 ? "this item" : `these ${items(number)}`} were right (approximate):`));
  const body = table.createTBody();
  for (const [name, cost] of known) {
    const row = body.insertRow();
    row.append(element("th", name, { scope: "row" }), element("td", cost > 0 ? `+${decimal(cost)}` : decimal(cost), { className: "n" }));
  }
  panel.append(table);
}
