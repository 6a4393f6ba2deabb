// A model over its versions: the trend with intervals, the lines of the classes, their spread.
import { apart, bound, clipped, decimal, stepOf } from "./numbers.js";
import { lineOf, plot, tooltip } from "./plot.js";

const HEIGHT = 320;
const MOST_MARKED = 60;
const NARROW = 420;
const LINE_HEIGHT = 14;
const NEAR = 0.08;

/** Where a version lies: in its row, or at its date. */
const placed = (steps, spacing) => (i) => (spacing === "dates" ? steps[i].milliseconds : i);

/** The frame of all three: versions from left to right, values on round ends. */
function frame(colours, steps, { low: min, high: max }, { right = 16, top = 12, spacing = "versions" } = {}) {
  const round = (value, part) => Math.abs(value / part - Math.round(value / part)) < 1e-6;
  const whole = stepOf(min, max);
  // Ticks begin at the lower end, so they are round if both ends are.
  const step = [whole, whole / 2].find((part) => round(min, part) && round(max, part)) ?? whole;
  const shared = {
    axisTick: { show: false },
    axisLine: { lineStyle: { color: colours.line } },
    axisLabel: { color: colours["ink-soft"], hideOverlap: true },
  };
  const versions = { type: "category", data: steps.map((step) => step.name), boundaryGap: true };
  const short = (name) => clipped(name, 14);
  return {
    grid: { left: 8, right, top, bottom: 8, containLabel: true },
    xAxis: spacing === "dates" ? { type: "time", ...shared } : { ...versions, ...shared, axisLabel: { ...shared.axisLabel, formatter: short } },
    yAxis: {
      type: "value",
      min,
      max,
      interval: step,
      axisLabel: { color: colours["ink-soft"], formatter: (value) => (round(value - min, step) ? bound(value) : "") },
      splitLine: { lineStyle: { color: colours.line } },
    },
  };
}

const heading = (step) => `${step.name} · ${step.time}`;

/** Name the aliases that point at a version, above it, with a ring around its value. */
function drawAliases(api, colours, names, levels) {
  const [x, y] = api.coord([api.value(0), api.value(1)]);
  const top = 4 + LINE_HEIGHT * levels.take(x, 7 * names.length);
  const room = api.getWidth() - x;
  const align = room < 3.5 * names.length ? "right" : x < 3.5 * names.length ? "left" : "center";
  return {
    type: "group",
    children: [
      { type: "line", shape: { x1: x, y1: top + LINE_HEIGHT, x2: x, y2: y - 9 }, style: { stroke: colours["ink-soft"], lineDash: [2, 2] } },
      { type: "circle", shape: { cx: x, cy: y, r: 9 }, style: { fill: "none", stroke: colours.ink, lineWidth: 2 } },
      { type: "text", style: { text: names, x: align === "right" ? api.getWidth() - 2 : align === "left" ? 2 : x, y: top, align, fill: colours.ink } },
    ],
  };
}

/** What is drawn once over all steps. */
const overlay = (at, draw, z) => ({
  type: "custom",
  silent: true,
  tooltip: { show: false },
  data: [[at(0), null]],
  clip: false,
  z,
  renderItem: (_, api) => draw(api),
});

/** Bands between two limits, one for each run of steps that have both. */
function areas(api, at, low, high, style) {
  const runs = [[]];
  low.forEach((value, i) => (value === null || high[i] === null ? runs.push([]) : runs.at(-1).push(i)));
  const edge = (run, limits) => run.map((i) => api.coord([at(i), limits[i]]));
  return runs
    .filter((run) => run.length)
    .map((run) => ({ type: "polygon", shape: { points: [...edge(run, low), ...edge(run, high).reverse()] }, style }));
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
  const common = steps.length > MOST_MARKED ? "none" : trend.style.symbol;
  const { chart } = plot(element, (colours) => {
    let levels = rows();
    const most = Math.min(named.filter(Boolean).length, 3);
    const style = lineOf(trend.style, colours, 2);
    return {
      height: HEIGHT,
      ...frame(colours, steps, trend.axis, { spacing, top: 12 + LINE_HEIGHT * most, right: 16 + 7 * trend.end.length }),
      tooltip: tooltip(colours, ({ dataIndex: i }) => [
        heading(steps[i]),
        `${trend.name} ${decimal(trend.values[i])} ${interval(i)}`,
        `Verdict: ${steps[i].verdict}`,
        ...(named[i] ? [`Aliases: ${named[i]}`] : []),
      ]),
      series: [
        {
          type: "line",
          name: trend.name,
          connectNulls: true,
          cursor: "pointer",
          // Failed versions are marked at every width.
          showSymbol: true,
          showAllSymbol: true,
          clip: false,
          lineStyle: style,
          endLabel: { show: true, formatter: trend.end, color: colours.ink },
          data: trend.values.map((value, i) => {
            const mark = trend.marks[i];
            return {
              value: [at(i), value],
              symbol: mark?.symbol ?? (named[i] ? trend.style.symbol : common),
              symbolSize: mark ? 12 : 8,
              itemStyle: { color: colours[(mark ?? trend.style).colour] },
            };
          }),
        },
        overlay(at, (api) => ({ type: "group", children: areas(api, at, trend.low, trend.high, { fill: style.color, opacity: 0.16 }) }), 1),
        {
          type: "custom",
          encode: { x: 0, y: 1 },
          data: steps.map((_, i) => [at(i), trend.values[i]]),
          silent: true,
          renderItem: ({ dataIndex: i }, api) => {
            if (!i) levels = rows();
            return named[i] && Number.isFinite(api.value(1)) ? drawAliases(api, colours, named[i], levels) : undefined;
          },
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
  const part = (number) => boxes.map((box) => box?.[number] ?? null);
  const style = { fill: colours["ink-soft"], opacity: 0.14 };
  const points = boxes.flatMap((box, i) => (box ? [api.coord([at(i), box[2]])] : []));
  const median = { type: "polyline", shape: { points }, style: { stroke: colours["ink-soft"], lineWidth: 2, fill: "none" } };
  return { type: "group", children: [...areas(api, at, part(0), part(4), style), ...areas(api, at, part(1), part(3), style), median] };
}

/** Name the lines at their ends, each on a line of its own, and lead from the end to the name. */
function drawNames(api, colours, lines, at, bottom) {
  const ends = lines.flatMap(({ end: label, values, style }) => {
    const last = values.findLastIndex((value) => value !== null);
    return last < 0 ? [] : [{ label, colour: colours[style.colour], end: api.coord([at(last), values[last]]) }];
  });
  const places = apart(ends.map(({ end }) => end[1]), LINE_HEIGHT, bottom);
  const left = Math.max(...ends.map(({ end }) => end[0])) + 22;
  return {
    type: "group",
    children: ends.flatMap(({ label, colour, end: [x, y] }, i) => [
      { type: "line", shape: { x1: x + 5, y1: y, x2: left - 3, y2: places[i] }, style: { stroke: colour, lineWidth: 1 } },
      { type: "text", style: { text: clipped(label, 14), x: left, y: places[i], verticalAlign: "middle", fill: colours.ink } },
    ]),
  };
}

function drawLines(element, { steps, index, axis, lines, boxes, banded, spacing }) {
  const at = placed(steps, spacing);
  plot(element, (colours, width) => {
    const narrow = width < NARROW;
    const longest = Math.max(0, ...lines.map((line) => Math.min(line.name.length, 14)));
    const option = frame(colours, steps, axis, { right: narrow ? 16 : 30 + 7 * longest, spacing });
    if (narrow) option.grid.bottom = 24 + 22 * Math.ceil((lines.length * (50 + 7 * longest)) / width);
    const height = HEIGHT + (narrow ? option.grid.bottom : 0);
    return {
      height,
      ...option,
      legend: narrow ? { bottom: 0, data: lines.map(({ name }) => name), textStyle: { color: colours.ink }, formatter: (name) => clipped(name, 14) } : undefined,
      tooltip: tooltip(colours, ({ seriesIndex, dataIndex }) => [
        heading(steps[dataIndex]),
        `${lines[seriesIndex].name}: ${index} ${decimal(lines[seriesIndex].values[dataIndex])}`,
      ]),
      series: [
        ...lines.map(({ name, style, values }) => ({
          type: "line",
          name,
          data: values.map((value, i) => [at(i), value]),
          connectNulls: false,
          clip: false,
          showSymbol: steps.length <= MOST_MARKED,
          showAllSymbol: true,
          symbol: style.symbol,
          symbolSize: 7,
          itemStyle: { color: colours[style.colour] },
          lineStyle: lineOf(style, colours, 1.75),
          emphasis: { focus: "series" },
        })),
        ...(banded ? [overlay(at, (api) => drawBand(api, colours, boxes, at), 1)] : []),
        ...(narrow ? [] : [overlay(at, (api) => drawNames(api, colours, lines, at, height - 40), 3)]),
      ],
    };
  });
}

/** A dot for each class beside its box, and the name of the worst one. */
function drawWorst(api, colours, { dots, worst, axis }) {
  const circles = dots.flatMap((row, i) =>
    row.flatMap((value) => {
      if (value === null) return [];
      const [cx, cy] = api.coord([i, value]);
      return [{ type: "circle", shape: { cx, cy, r: 1.8 }, style: { fill: colours.ink, opacity: 0.45 } }];
    }),
  );
  const room = Math.floor(api.size([1, 0])[0] / 7);
  const names = worst.flatMap((one, i) => {
    if (!one || room < 3) return [];
    const [x, y] = api.coord([i, one.value]);
    // Below its mark, but beside the whisker of one at the end of the axis.
    const near = NEAR * (axis.high - axis.low);
    const low = one.value - axis.low < near;
    const beside = low || axis.high - one.value < near;
    const place = beside ? { x: x + 6, y: low ? y - 3 : y + 3, verticalAlign: low ? "bottom" : "top" } : { x, y: y + 5, align: "center" };
    return [{ type: "text", style: { text: clipped(one.label, Math.min(beside ? room / 2 : room, 14)), ...place, fill: colours["ink-soft"], fontSize: 11 } }];
  });
  return { type: "group", children: [...circles, ...names] };
}

function drawBoxes(element, charts) {
  const { steps, axis, boxes, boxed } = charts;
  const at = (i) => i;
  plot(element, (colours) => ({
    height: HEIGHT,
    ...frame(colours, steps, axis),
    tooltip: tooltip(colours, ({ dataIndex: i }) => [
      heading(steps[i]),
      ...["Lowest", "Lower quartile", "Median", "Upper quartile", "Highest"].map((name, part) => `${name} ${decimal(boxes[i][part])}`),
    ]),
    series: boxed
      ? [
          {
            type: "boxplot",
            boxWidth: [4, 36],
            itemStyle: { color: colours.track, borderColor: colours["series-1"], borderWidth: 1.5 },
            data: boxes.map((box) => box ?? []),
          },
          overlay(at, (api) => drawWorst(api, colours, charts), 3),
        ]
      : [overlay(at, (api) => drawBand(api, colours, boxes, at), 1)],
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
