// A model over its versions: the trend with intervals, the lines of the classes, their spread.
import { apart, axisAround, bound, clipped, decimal } from "./numbers.js";
import { plot, tooltip } from "./plot.js";

const HEIGHT = 320;
const MOST_MARKED = 60;
const NARROW = 420;
const LINE_HEIGHT = 14;
const SYMBOLS = ["circle", "diamond", "triangle", "rect", "roundRect", "pin", "arrow"];
const DASHES = ["solid", "dashed", "dotted", [8, 3, 2, 3]];

const numbers = (values) => values.filter((value) => value !== null);

/** Where a version lies: in its row, or at its date. */
const placed = (steps, spacing) => (i) => (spacing === "dates" ? steps[i].milliseconds : i);

/** The frame of all three: versions from left to right, values on round ends. */
function frame(colours, steps, values, range, { right = 16, top = 12, spacing = "versions" } = {}) {
  const [min, max] = axisAround(numbers(values), range);
  const look = {
    axisTick: { show: false },
    axisLine: { lineStyle: { color: colours.line } },
    axisLabel: { color: colours["ink-soft"], hideOverlap: true },
  };
  const versions = { type: "category", data: steps.map((step) => step.name), boundaryGap: true };
  const short = (name) => clipped(name, 14);
  return {
    grid: { left: 8, right, top, bottom: 8, containLabel: true },
    xAxis: spacing === "dates" ? { type: "time", ...look } : { ...versions, ...look, axisLabel: { ...look.axisLabel, formatter: short } },
    yAxis: {
      type: "value",
      min,
      max,
      axisLabel: { color: colours["ink-soft"], formatter: bound },
      splitLine: { lineStyle: { color: colours.line } },
    },
  };
}

const heading = (step) => `${step.name} · ${step.time}`;

/** Draw the interval of a version and, above it, the names of the aliases that point at it. */
function drawStep(api, colours, names, levels) {
  const [x, low] = api.coord([api.value(0), api.value(1)]);
  const [, value] = api.coord([api.value(0), api.value(3)]);
  const known = Number.isFinite(api.value(1));
  const high = known ? api.coord([api.value(0), api.value(2)])[1] : value;
  const half = 5;
  const children = [];
  if (known) {
    children.push({ type: "rect", shape: { x: x - half, y: high, width: 2 * half, height: Math.max(low - high, 1), r: 3 }, style: { fill: colours.accent, opacity: 0.25 } });
  }
  if (names) {
    const y = 4 + LINE_HEIGHT * levels.take(x, 7 * names.length);
    children.push({ type: "line", shape: { x1: x, y1: y + LINE_HEIGHT, x2: x, y2: high }, style: { stroke: colours["ink-soft"], lineDash: [2, 2] } });
    children.push({ type: "circle", shape: { cx: x, cy: value, r: 9 }, style: { fill: "none", stroke: colours.ink, lineWidth: 2 } });
    const room = api.getWidth() - x;
    const align = room < 3.5 * names.length ? "right" : x < 3.5 * names.length ? "left" : "center";
    children.push({ type: "text", style: { text: names, x: align === "right" ? api.getWidth() - 2 : align === "left" ? 2 : x, y, align, fill: colours.ink } });
  }
  return { type: "group", children };
}

/** Rows of labels from left to right: each goes into the first row where it has room. */
function rows() {
  const ends = [];
  const take = (x, width) => {
    const free = ends.findIndex((end) => end < x - width / 2);
    const row = free < 0 ? ends.length : free;
    ends[row] = x + width / 2;
    return row;
  };
  return { take };
}

function drawTrend(element, { steps, trend, spacing }) {
  const interval = (i) => (trend.low[i] === null ? "no interval" : `[${decimal(trend.low[i])}, ${decimal(trend.high[i])}]`);
  const at = placed(steps, spacing);
  const named = steps.map((step) => step.aliases.map((name) => clipped(name, 14)).join(", "));
  const common = steps.length > MOST_MARKED ? "none" : "circle";
  const { chart } = plot(element, (colours) => {
    let levels = rows();
    const most = Math.min(named.filter(Boolean).length, 3);
    return {
      height: HEIGHT,
      ...frame(colours, steps, [...trend.values, ...trend.low, ...trend.high], trend.range, { spacing, top: 12 + LINE_HEIGHT * most }),
      tooltip: tooltip(colours, ({ dataIndex: i }) => [
        heading(steps[i]),
        `${trend.name} ${decimal(trend.values[i])} ${interval(i)}`,
        `Verdict: ${steps[i].verdict}`,
        ...(named[i] ? [`Aliases: ${named[i]}`] : []),
      ]),
      series: [
        {
          type: "custom",
          encode: { x: 0, y: [1, 2, 3] },
          data: steps.map((_, i) => [at(i), trend.low[i], trend.high[i], trend.values[i]]),
          silent: true,
          renderItem: ({ dataIndex: i }, api) => {
            if (!i) levels = rows();
            return Number.isFinite(api.value(3)) ? drawStep(api, colours, named[i], levels) : undefined;
          },
        },
        {
          type: "line",
          name: trend.name,
          connectNulls: true,
          cursor: "pointer",
          // Failed versions are marked at every width.
          showSymbol: true,
          showAllSymbol: true,
          lineStyle: { width: 2, color: colours.accent },
          data: trend.values.map((value, i) => {
            const failed = steps[i].tone === "bad";
            return {
              value: [at(i), value],
              symbol: failed ? "diamond" : named[i] ? "circle" : common,
              symbolSize: failed ? 12 : 8,
              itemStyle: { color: failed ? colours.bad : colours.accent },
            };
          }),
        },
      ],
    };
  });
  chart.on("click", ({ dataIndex }) => {
    window.location.href = `${element.dataset.evaluations}${steps[dataIndex].id}`;
  });
}

/** Draw the range of all classes, their middle half and their median, where only some have a line. */
function drawBand(api, colours, boxes, at) {
  const known = boxes.flatMap((box, i) => (box ? [[at(i), box]] : []));
  const edge = (part) => known.map(([x, box]) => api.coord([x, box[part]]));
  const area = (low, high) => ({ type: "polygon", shape: { points: [...edge(low), ...edge(high).reverse()] }, style: { fill: colours["ink-soft"], opacity: 0.14 } });
  const median = { type: "polyline", shape: { points: edge(2) }, style: { stroke: colours["ink-soft"], lineWidth: 2, fill: "none" } };
  return { type: "group", children: [area(0, 4), area(1, 3), median] };
}

/** Name the lines at their ends, each on a line of its own, and lead from the end to the name. */
function drawNames(api, colours, lines, at, bottom) {
  const ends = lines.flatMap(({ label, values }, number) => {
    const last = values.findLastIndex((value) => value !== null);
    return last < 0 ? [] : [{ label, number, end: api.coord([at(last), values[last]]) }];
  });
  const places = apart(ends.map(({ end }) => end[1]), LINE_HEIGHT, bottom);
  const left = Math.max(...ends.map(({ end }) => end[0])) + 22;
  return {
    type: "group",
    children: ends.flatMap(({ label, number, end: [x, y] }, i) => [
      { type: "line", shape: { x1: x + 5, y1: y, x2: left - 3, y2: places[i] }, style: { stroke: colours.series[number % colours.series.length], lineWidth: 1 } },
      { type: "text", style: { text: clipped(label, 14), x: left, y: places[i], verticalAlign: "middle", fill: colours.ink } },
    ]),
  };
}

function drawLines(element, { steps, index, lines, boxes, classes, spacing }) {
  const at = placed(steps, spacing);
  const banded = lines.length < classes;
  plot(element, (colours, width) => {
    const narrow = width < NARROW;
    const longest = Math.max(0, ...lines.map((line) => Math.min(line.label.length, 14)));
    const values = [...lines.flatMap((line) => line.values), ...(banded ? boxes.flatMap((box) => box ?? []) : [])];
    const option = frame(colours, steps, values, index.range, { right: narrow ? 16 : 30 + 7 * longest, spacing });
    if (narrow) option.grid.bottom = 24 + 22 * Math.ceil((lines.length * (50 + 7 * longest)) / width);
    const height = HEIGHT + (narrow ? option.grid.bottom : 0);
    const overlay = (draw) => ({
      type: "custom",
      silent: true,
      tooltip: { show: false },
      data: [[at(0), null]],
      clip: false,
      renderItem: (_, api) => draw(api),
    });
    return {
      height,
      ...option,
      color: colours.series,
      legend: narrow ? { bottom: 0, data: lines.map(({ label }) => label), textStyle: { color: colours.ink }, formatter: (name) => clipped(name, 14) } : undefined,
      tooltip: tooltip(colours, ({ seriesIndex, dataIndex }) => [
        heading(steps[dataIndex]),
        `${lines[seriesIndex].label}: ${index.name} ${decimal(lines[seriesIndex].values[dataIndex])}`,
      ]),
      series: [
        ...lines.map((line, number) => ({
          type: "line",
          name: line.label,
          data: line.values.map((value, i) => [at(i), value]),
          connectNulls: false,
          showSymbol: steps.length <= MOST_MARKED,
          symbol: SYMBOLS[number % SYMBOLS.length],
          symbolSize: 7,
          lineStyle: { width: 1.75, type: DASHES[Math.floor(number / colours.series.length) % DASHES.length] },
          emphasis: { focus: "series" },
        })),
        ...(banded ? [{ ...overlay((api) => drawBand(api, colours, boxes, at)), z: 1 }] : []),
        ...(narrow ? [] : [overlay((api) => drawNames(api, colours, lines, at, height - 40))]),
      ],
    };
  });
}

function drawBoxes(element, { steps, index, boxes }) {
  plot(element, (colours) => ({
    height: HEIGHT,
    ...frame(colours, steps, boxes.flatMap((box) => box ?? []), index.range),
    tooltip: tooltip(colours, ({ dataIndex: i }) => [
      heading(steps[i]),
      ...["Lowest", "Lower quartile", "Median", "Upper quartile", "Highest"].map((name, at) => `${name} ${decimal(boxes[i][at])}`),
    ]),
    series: {
      type: "boxplot",
      boxWidth: [4, 36],
      itemStyle: { color: colours.track, borderColor: colours.accent, borderWidth: 1.5 },
      data: boxes.map((box) => box ?? []),
    },
  }));
}

export function drawModel() {
  const source = document.querySelector("#model-charts");
  if (!source) return;
  const charts = JSON.parse(source.textContent);
  if (!charts.steps.length) return;
  const chart = (name) => document.querySelector(`[data-chart="${name}"]`);
  drawTrend(chart("trend"), charts);
  drawLines(chart("lines"), charts);
  drawBoxes(chart("boxes"), charts);
}
