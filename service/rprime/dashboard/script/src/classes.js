// Per-class charts: the values of one index with their intervals, and the radar of several.
import { chosen, remember } from "./address.js";
import { bound, clipped, count, decimal, stepOf } from "./numbers.js";
import { lineOf, plot, tooltip } from "./plot.js";

const ROWS = [24, 34];
const COMFORTABLE = 360;

const inWords = (index, i) =>
  `${decimal(index.values[i])}` + (index.low[i] === null ? "" : ` [${decimal(index.low[i])}, ${decimal(index.high[i])}]`);

/** The rows of the table below, in its order. */
export function drawDots(element, charts, pick) {
  const select = pick.querySelector("select");
  const first = chosen("index") ?? charts.by;
  charts.indices.forEach((index, at) => select.add(new Option(index.name, at, false, index.key === first)));
  pick.hidden = false;
  const build = (colours, width) => {
    const index = charts.indices[select.value];
    const rows = charts.labels.length;
    const longest = Math.max(...charts.labels.map((label) => Math.min(label.length, 16)));
    const left = Math.min(20 + 6.5 * longest, width * 0.3);
    const { low: min, high: max } = index.axis;
    return {
      height: rows * Math.min(Math.max(COMFORTABLE / rows, ROWS[0]), ROWS[1]) + 44,
      grid: { left, right: 24, top: 8, bottom: 32 },
      xAxis: {
        type: "value",
        min,
        max,
        interval: stepOf(min, max),
        axisLabel: { color: colours["ink-soft"], formatter: bound, hideOverlap: true },
        splitLine: { lineStyle: { color: colours.line } },
      },
      yAxis: {
        type: "category",
        inverse: true,
        data: charts.labels,
        axisTick: { show: false },
        axisLine: { show: false },
        axisLabel: { interval: 0, color: colours.ink, formatter: (name) => clipped(name, 16) },
      },
      tooltip: tooltip(colours, ({ dataIndex }) => [
        charts.labels[dataIndex],
        `${index.name} ${inWords(index, dataIndex)}`,
        ...(index.baseline[dataIndex] === null ? [] : [`baseline ${decimal(index.baseline[dataIndex])}`]),
        `${count(charts.support[dataIndex])} items`,
      ]),
      series: {
        type: "custom",
        // A dot at the end of the axis is whole.
        clip: false,
        encode: { x: [1, 2, 3, 4], y: 0 },
        data: charts.labels.map((_, i) => [i, index.values[i], index.low[i], index.high[i], index.baseline[i]]),
        renderItem: (_, api) => {
          const value = api.value(1);
          if (!Number.isFinite(value)) return undefined;
          const [x, y] = api.coord([value, api.value(0)]);
          const children = [];
          if (Number.isFinite(api.value(2))) {
            const [[low], [high]] = [api.coord([api.value(2), 0]), api.coord([api.value(3), 0])];
            children.push({ type: "rect", shape: { x: low, y: y - 5, width: Math.max(high - low, 1), height: 10, r: 3 }, style: { fill: colours["series-1"], opacity: 0.3 } });
          }
          if (Number.isFinite(api.value(4))) {
            children.push({ type: "circle", shape: { cx: api.coord([api.value(4), 0])[0], cy: y, r: 4 }, style: { fill: "none", stroke: colours.ink, lineWidth: 1.5 } });
          }
          children.push({ type: "circle", shape: { cx: x, cy: y, r: 4.5 }, style: { fill: colours["series-1"], stroke: colours.surface, lineWidth: 1.5 } });
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

/** The classes around a circle; of very few, bars. */
export function drawRadar(element, radar) {
  const { labels, outlines } = radar;
  const names = outlines.map(({ name }) => name);
  const describe = (colours, of) =>
    tooltip(colours, (given) => [names[of(given)], ...labels.map((label, i) => `${label}: ${decimal(outlines[of(given)].values[i])}`)]);
  const legend = (colours) => ({ bottom: 0, show: names.length > 1, textStyle: { color: colours.ink }, itemWidth: 14, inactiveColor: colours["ink-soft"], formatter: (name) => clipped(name, 24) });
  plot(element, (colours, width) => (radar.bars ? bars : spokes)(radar, colours, { width, names, describe, legend: legend(colours) }));
}

function bars({ labels, outlines, axis }, colours, { names, describe, legend }) {
  return {
    height: 18 * labels.length * (outlines.length + 1) + 72,
    legend: { ...legend, data: names },
    grid: { left: 8, right: 24, top: 8, bottom: 48, containLabel: true },
    xAxis: { type: "value", min: axis.low, max: axis.high, interval: stepOf(axis.low, axis.high), axisLabel: { color: colours["ink-soft"], formatter: bound, hideOverlap: true }, splitLine: { lineStyle: { color: colours.line } } },
    yAxis: { type: "category", inverse: true, data: labels, axisTick: { show: false }, axisLine: { show: false }, axisLabel: { color: colours.ink, formatter: (name) => clipped(name, 16) } },
    tooltip: describe(colours, ({ seriesIndex }) => seriesIndex),
    series: outlines.map(({ name, style, values }) => ({ type: "bar", name, data: values, itemStyle: { color: colours[style.colour] } })),
  };
}

function spokes({ labels, outlines, axis }, colours, { width, names, describe, legend }) {
  const height = Math.min(Math.max(width * 0.85, 320), 460);
  const radius = ((width < 480 ? 0.58 : 0.72) * Math.min(width, height)) / 2;
  // A letter takes some seven pixels; a name has what is left of the width beside the circle.
  const parts = (axis.high - axis.low) / stepOf(axis.low, axis.high);
  // Where an end is not round, as -1/9, rings stand at quarters.
  const rings = Math.abs(parts - Math.round(parts)) < 1e-6 ? Math.round(parts) : 4;
  const letters = Math.floor((width / 2 - radius - 20) / 7);
  return {
    height,
    legend: { ...legend, data: outlines.map(({ name, style }) => ({ name, icon: style.symbol })) },
    radar: {
      center: ["50%", "47%"],
      radius,
      splitNumber: rings,
      clockwise: true,
      axisName: { color: colours.ink, formatter: (name) => clipped(name, Math.min(letters, 12)) },
      axisLine: { lineStyle: { color: colours.line } },
      splitLine: { lineStyle: { color: colours.line } },
      splitArea: { show: false },
      indicator: labels.map((name, at) => ({
        name,
        min: axis.low,
        max: axis.high,
        axisLabel: { show: at === 0, color: colours["ink-soft"], fontSize: 10, formatter: bound, showMinLabel: true },
      })),
    },
    tooltip: describe(colours, ({ dataIndex }) => dataIndex),
    series: {
      type: "radar",
      symbolSize: 6,
      data: outlines.map(({ style, values }, at) => ({
        name: names[at],
        value: values.map((value) => value ?? axis.low),
        symbol: style.symbol,
        itemStyle: { color: colours[style.colour] },
        lineStyle: lineOf(style, colours, 2),
      })),
    },
  };
}
