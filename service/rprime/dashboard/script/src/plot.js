// What all charts share: the parts of ECharts that are used, the palette, and their life in a page.
import { BarChart, BoxplotChart, CustomChart, LineChart, RadarChart } from "echarts/charts";
import {
  DataZoomComponent,
  GridComponent,
  LegendComponent,
  RadarComponent,
  TooltipComponent,
} from "echarts/components";
import * as echarts from "echarts/core";
import { LabelLayout } from "echarts/features";
import { CanvasRenderer } from "echarts/renderers";

echarts.use([
  BarChart,
  BoxplotChart,
  CanvasRenderer,
  CustomChart,
  DataZoomComponent,
  GridComponent,
  LabelLayout,
  LegendComponent,
  LineChart,
  RadarChart,
  RadarComponent,
  TooltipComponent,
]);

const TOKENS = ["surface", "ink", "ink-soft", "line", "track", "right", "wrong", "open", "bad", ...[1, 2, 3, 4, 5, 6, 7].map((number) => `series-${number}`)];

let probe;

// A custom property keeps its light-dark(); a colour that uses it is resolved.
const resolved = (token) => {
  probe ??= document.body.appendChild(Object.assign(document.createElement("span"), { hidden: true }));
  // Forced colours would make every token the same colour of the system.
  probe.style.forcedColorAdjust = "none";
  probe.style.color = `var(--${token})`;
  return getComputedStyle(probe).color;
};

export function palette() {
  return Object.fromEntries(TOKENS.map((token) => [token, resolved(token)]));
}

/** How a line of a width looks: dashes are given in widths of the line, as in the figures. */
export const lineOf = (style, colours, width) => ({
  color: colours[style.colour],
  width,
  type: style.dash.length ? style.dash.map((part) => part * width) : "solid",
});

const channels = (colour) => colour.match(/[\d.]+/g).slice(0, 3).map(Number);

export const mixed = (from, to, share) => {
  const [a, b] = [channels(from), channels(to)];
  return `rgb(${a.map((part, i) => Math.round(part + (b[i] - part) * share)).join(",")})`;
};

export const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif";
const drawn = new Set();

/** Draw into an element, again whenever its width or the theme changes.
 *
 * build(palette, width) gives an option of ECharts, with `height` in pixels beside it.
 */
export function plot(element, build) {
  element.hidden = false;
  const chart = echarts.init(element);
  // For tests, which ask what is drawn.
  element.chart = chart;
  let width = 0;
  const redraw = () => {
    if (!element.isConnected || !element.clientWidth) return;
    width = element.clientWidth;
    const { height, ...option } = build(palette(), width);
    element.style.height = `${height}px`;
    chart.resize();
    chart.setOption({ animation: false, textStyle: { fontFamily: FONT }, ...option }, true);
    // Paper does not wait for the next frame.
    chart.getZr().flush();
  };
  const observer = new ResizeObserver(() => element.clientWidth !== width && redraw());
  observer.observe(element);
  document.addEventListener("themechange", redraw);
  const leave = () => {
    observer.disconnect();
    document.removeEventListener("themechange", redraw);
    chart.dispose();
  };
  drawn.add({ element, leave });
  redraw();
  return { chart, redraw };
}

/** Let go of charts whose elements have left the page. */
export function sweep() {
  for (const one of drawn) {
    if (!one.element.isConnected) {
      one.leave();
      drawn.delete(one);
    }
  }
}

/** A tooltip whose lines are text, whatever they say: [label, value] pairs under a title. */
export const tooltip = (colours, describe) => ({
  confine: true,
  backgroundColor: colours.surface,
  borderColor: colours.line,
  textStyle: { color: colours.ink, fontSize: 13 },
  formatter: (given) => {
    const [title, ...lines] = describe(given);
    const box = document.createElement("div");
    box.append(Object.assign(document.createElement("strong"), { textContent: title }));
    for (const line of lines) box.append(Object.assign(document.createElement("div"), { textContent: line }));
    return box;
  },
});
