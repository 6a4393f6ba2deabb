// An evaluation: draws what the server put beside its words.
import { drawDots, drawRadar } from "./classes.js";
import { drawHeat } from "./heat.js";
import { sweep } from "./plot.js";

export function drawReport(report) {
  sweep();
  const source = report.querySelector("#charts");
  if (!source) return;
  const charts = JSON.parse(source.textContent);
  const chart = (name) => report.querySelector(`[data-chart="${name}"]`);
  if (!charts.labels.length) return;
  drawHeat(chart("heat"), charts, report);
  const { table, radar } = charts;
  if (table.labels.length && table.indices.length) {
    drawDots(chart("dots"), table, report.querySelector("[data-dots-pick]"));
  }
  if (radar) drawRadar(chart("radar"), radar);
}
