// A model over its versions: the trend with intervals, the lines of the classes, their spread.
import { axisAround, bound, clipped, decimal } from "./numbers.js";
import { plot, tooltip } from "./plot.js";

const HEIGHT = 320;
const MOST_MARKED = 60;
const NARROW = 420;
const SYMBOLS = ["circle", "diamond", "triangle", "rect", "roundRect", "pin", "arrow"];
const DASHES = ["solid", "dashed", "dotted", [8, 3, 2, 3]];

const numbers = (values) => values.filter((value) => value !== null);

/** The frame of all three: versions from left to right, values on round ends. */
function frame(colours, steps, values, range, right = 16) {
  const [min, max] = axisAround(numbers(values), range);
  return {
    grid: { left: 8, right, top: 12, bottom: 8, containLabel: true },
    xAxis: {
      type: "category",
      data: steps.map((step) => step.name),
      boundaryGap: true,
      axisTick: { show: false },
      axisLine: { lineStyle: { color: colours.line } },
      axisLabel: { color: colours["ink-soft"], formatter: (name) => clipped(name, 14), hideOverlap: true },
    },
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

function drawTrend(element, { steps, trend }) {
  const interval = (i) => (trend.low[i] === null ? "no interval" : `[${decimal(trend.low[i])}, ${decimal(trend.high[i])}]`);
  const marked = steps.length <= MOST_MARKED;
  const { chart } = plot(element, (colours) => ({
    height: HEIGHT,
    ...frame(colours, steps, [...trend.values, ...trend.low, ...trend.high], trend.range),
    tooltip: {
      ...tooltip(colours, ([{ dataIndex: i }]) => [
        heading(steps[i]),
        `${trend.name} ${decimal(trend.values[i])} ${interval(i)}`,
        `Verdict: ${steps[i].verdict}`,
      ]),
      trigger: "axis",
    },
    series: [
      {
        type: "custom",
        encode: { x: 0, y: [1, 2] },
        data: steps.map((_, i) => [i, trend.low[i], trend.high[i]]),
        silent: true,
        renderItem: (_, api) => {
          if (!Number.isFinite(api.value(1))) return undefined;
          const [[x, low], [, high]] = [api.coord([api.value(0), api.value(1)]), api.coord([api.value(0), api.value(2)])];
          const half = Math.min(Math.max(api.size([1, 0])[0] * 0.18, 1), 9);
          return {
            type: "rect",
            shape: { x: x - half, y: high, width: 2 * half, height: Math.max(low - high, 1), r: Math.min(half, 3) },
            style: { fill: colours.accent, opacity: 0.25 },
          };
        },
      },
      {
        type: "line",
        name: trend.name,
        connectNulls: true,
        cursor: "pointer",
        showSymbol: marked,
        // Failed versions are marked at every width.
        showAllSymbol: true,
        symbolSize: 8,
        lineStyle: { width: 2, color: colours.accent },
        data: trend.values.map((value, i) => ({
          value,
          symbol: steps[i].tone === "bad" ? "diamond" : "circle",
          symbolSize: steps[i].tone === "bad" ? 12 : 8,
          itemStyle: { color: steps[i].tone === "bad" ? colours.bad : colours.accent },
          label: {
            show: steps[i].aliases.length > 0,
            position: "top",
            distance: 8,
            color: colours.ink,
            formatter: () => steps[i].aliases.map((name) => clipped(name, 14)).join(", "),
          },
        })),
        labelLayout: { hideOverlap: true },
      },
    ],
  }));
  chart.on("click", ({ dataIndex }) => {
    window.location.href = `${element.dataset.evaluations}${steps[dataIndex].id}`;
  });
}

function drawLines(element, { steps, index, lines }) {
  plot(element, (colours, width) => {
    const narrow = width < NARROW;
    const longest = Math.max(0, ...lines.map((line) => Math.min(line.label.length, 14)));
    const option = frame(colours, steps, lines.flatMap((line) => line.values), index.range, narrow ? 16 : 24 + 7 * longest);
    if (narrow) option.grid.bottom = 24 + 22 * Math.ceil((lines.length * (50 + 7 * longest)) / width);
    return {
      height: HEIGHT + (narrow ? option.grid.bottom : 0),
      ...option,
      color: colours.series,
      legend: narrow ? { bottom: 0, textStyle: { color: colours.ink }, formatter: (name) => clipped(name, 14) } : undefined,
      tooltip: tooltip(colours, ({ seriesIndex, dataIndex }) => [
        heading(steps[dataIndex]),
        `${lines[seriesIndex].label}: ${index.name} ${decimal(lines[seriesIndex].values[dataIndex])}`,
      ]),
      series: lines.map((line, at) => ({
        type: "line",
        name: line.label,
        data: line.values,
        connectNulls: false,
        showSymbol: steps.length <= MOST_MARKED,
        symbol: SYMBOLS[at % SYMBOLS.length],
        symbolSize: 7,
        lineStyle: { width: 1.75, type: DASHES[Math.floor(at / colours.series.length) % DASHES.length] },
        emphasis: { focus: "series" },
        endLabel: { show: !narrow, formatter: ({ seriesName }) => clipped(seriesName, 14), color: colours.ink, distance: 8 },
        labelLayout: { moveOverlap: "shiftY" },
      })),
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
