// Per-class charts: the values of one index with their intervals, and the radar of all of them.
import { chosen, remember } from "./address.js";
import { axisAround, bound, clipped, count, decimal } from "./numbers.js";
import { plot, tooltip } from "./plot.js";

const ROWS = [24, 34];
const COMFORTABLE = 360;
const MOST_ROWS = 30;
const MOST_SPOKES = 20;

const inWords = (index, i) =>
  `${decimal(index.values[i])}` + (index.low[i] === null ? "" : ` [${decimal(index.low[i])}, ${decimal(index.high[i])}]`);

/** Row numbers: in their order while all are seen at once, else the lowest value first. */
function ordered(index, labels, most) {
  const order = [...labels.keys()];
  if (order.length <= most) return order;
  const known = (i) => index.values[i] ?? Infinity;
  return order.sort((a, b) => known(a) - known(b));
}

/** The rows of the table below, in its order. */
export function drawDots(element, charts, pick) {
  const select = pick.querySelector("select");
  const first = chosen("index") ?? charts.by;
  charts.indices.forEach((index, at) => select.add(new Option(index.name, at, false, index.key === first)));
  pick.hidden = false;
  const build = (colours, width) => {
    const index = charts.indices[select.value];
    const order = [...charts.labels.keys()];
    const rows = Math.min(order.length, MOST_ROWS);
    const longest = Math.max(...order.map((i) => Math.min(charts.labels[i].length, 16)));
    const left = Math.min(20 + 6.5 * longest, width * 0.3);
    const [min, max] = axisAround([...index.values, ...index.low, ...index.high, ...index.baseline].filter((n) => n !== null), index.range);
    const scrolls = order.length > MOST_ROWS;
    return {
      height: rows * Math.min(Math.max(COMFORTABLE / rows, ROWS[0]), ROWS[1]) + 44,
      grid: { left, right: scrolls ? 40 : 24, top: 8, bottom: 32 },
      xAxis: {
        type: "value",
        min,
        max,
        axisLabel: { color: colours["ink-soft"], formatter: bound, hideOverlap: true },
        splitLine: { lineStyle: { color: colours.line } },
      },
      yAxis: {
        type: "category",
        inverse: true,
        data: order.map((i) => charts.labels[i]),
        axisTick: { show: false },
        axisLine: { show: false },
        axisLabel: { interval: 0, color: colours.ink, formatter: (name) => clipped(name, 16) },
      },
      dataZoom: scrolls
        ? [
            { type: "slider", yAxisIndex: 0, startValue: 0, endValue: MOST_ROWS - 1, zoomLock: true, brushSelect: false, width: 14, right: 6, showDetail: false, showDataShadow: false, filterMode: "none", borderColor: colours.line, fillerColor: colours.track, handleSize: 0, moveHandleSize: 0 },
            { type: "inside", yAxisIndex: 0, zoomOnMouseWheel: false, moveOnMouseMove: true, filterMode: "none" },
          ]
        : [],
      tooltip: tooltip(colours, ({ dataIndex }) => [
        charts.labels[order[dataIndex]],
        `${index.name} ${inWords(index, order[dataIndex])}`,
        ...(index.baseline[order[dataIndex]] === null ? [] : [`baseline ${decimal(index.baseline[order[dataIndex]])}`]),
        `${count(charts.support[order[dataIndex]])} items`,
      ]),
      series: {
        type: "custom",
        // A dot at the end of the axis is whole, unless rows are scrolled out of sight.
        clip: scrolls,
        encode: { x: [1, 2, 3, 4], y: 0 },
        data: order.map((i, at) => [at, index.values[i], index.low[i], index.high[i], index.baseline[i]]),
        renderItem: (_, api) => {
          const value = api.value(1);
          if (!Number.isFinite(value)) return undefined;
          const [x, y] = api.coord([value, api.value(0)]);
          const children = [];
          if (Number.isFinite(api.value(2))) {
            const [[low], [high]] = [api.coord([api.value(2), 0]), api.coord([api.value(3), 0])];
            children.push({ type: "rect", shape: { x: low, y: y - 5, width: Math.max(high - low, 1), height: 10, r: 3 }, style: { fill: colours.accent, opacity: 0.3 } });
          }
          if (Number.isFinite(api.value(4))) {
            children.push({ type: "circle", shape: { cx: api.coord([api.value(4), 0])[0], cy: y, r: 4 }, style: { fill: "none", stroke: colours.ink, lineWidth: 1.5 } });
          }
          children.push({ type: "circle", shape: { cx: x, cy: y, r: 4.5 }, style: { fill: colours.accent, stroke: colours.surface, lineWidth: 1.5 } });
          return { type: "group", children };
        },
      },
    };
  };
  const { redraw } = plot(element, build);
  select.addEventListener("change", () => {
    remember({ index: charts.indices[select.value].key });
    redraw();
  });
}

const SYMBOLS = ["circle", "diamond", "triangle", "rect", "roundRect"];
const DASHES = ["solid", "dashed", "dotted", [8, 3, 2, 3], [12, 4]];

export function drawRadar(element, charts) {
  const lead = charts.indices[0];
  const spokes = ordered(lead, charts.labels, MOST_SPOKES).slice(0, MOST_SPOKES);
  // Of three classes each radar is a triangle.
  if (spokes.length < 4) return;
  const values = charts.indices.map((index) => spokes.map((i) => index.values[i]));
  const bounded = charts.indices.every(({ range }) => range[1] !== null);
  const [min, max] = axisAround(values.flat().filter((n) => n !== null), [null, bounded ? 1 : null]);
  plot(element, (colours, width) => ({
    height: Math.min(Math.max(width * 0.85, 320), 460),
    color: colours.series,
    legend: { bottom: 0, data: charts.indices.map(({ name }, at) => ({ name, icon: SYMBOLS[at % SYMBOLS.length] })), textStyle: { color: colours.ink }, itemWidth: 14, inactiveColor: colours["ink-soft"] },
    radar: {
      center: ["50%", "47%"],
      radius: width < 480 ? "58%" : "72%",
      splitNumber: 4,
      // As the figures have it.
      clockwise: true,
      axisName: { color: colours.ink, formatter: (name) => clipped(name, 12) },
      axisLine: { lineStyle: { color: colours.line } },
      splitLine: { lineStyle: { color: colours.line } },
      splitArea: { show: false },
      indicator: spokes.map((i, at) => ({
        name: charts.labels[i],
        min,
        max,
        axisLabel: { show: at === 0, color: colours["ink-soft"], fontSize: 10, formatter: bound, showMinLabel: true },
      })),
    },
    tooltip: tooltip(colours, ({ dataIndex }) => [
      charts.indices[dataIndex].name,
      ...spokes.map((i) => `${charts.labels[i]}: ${inWords(charts.indices[dataIndex], i)}`).slice(0, 12),
    ]),
    series: {
      type: "radar",
      symbolSize: 6,
      data: charts.indices.map((index, at) => ({
        name: index.name,
        value: values[at].map((value) => value ?? min),
        symbol: SYMBOLS[at % SYMBOLS.length],
        lineStyle: { width: at ? 1.5 : 2.5, type: DASHES[at % DASHES.length] },
      })),
    },
  }));
}
