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
  if (charts.indices.length) {
    const names = [...report.querySelectorAll(".classes tbody th bdi")].map((name) => name.textContent);
    drawDots(chart("dots"), charts, report.querySelector("[data-dots-pick]"), names);
    drawRadar(chart("radar"), charts);
  }
}
