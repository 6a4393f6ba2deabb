// The evidence on the screen as lines for a terminal, a job and a program.
import { copies } from "./copy.js";

const MOST_CLASSES = 30;

/** The confusion matrix behind the charts; null where the page does not hold all of it. */
function matrixOf(charts) {
  const { labels, counts, unclassified, support } = charts;
  if (!labels.length || labels.length > MOST_CLASSES || unclassified) return null;
  const whole = counts.every((row, i) => row.reduce((sum, n) => sum + n, 0) === support[i]);
  return whole ? counts : null;
}

/** Blocks of [title, text] for the evidence of a report. */
export function snippetsOf(charts, confidence, service) {
  const matrix = charts && matrixOf(charts);
  if (!matrix) return [];
  const body = JSON.stringify({ labels: charts.labels, confusion_matrix: matrix, confidence });
  // In single quotes a shell reads everything but the quote itself.
  const quoted = body.replaceAll("'", "'\\''");
  const rows = JSON.stringify(matrix);
  return [
    ["curl", `curl -s ${service} -H 'Content-Type: application/json' -d '${quoted}'`],
    ["Command", `printf '%s' '${quoted}' | rprime evaluate - --json`],
    ["Python", `import rprime\n\nreport = rprime.evaluate(\n    confusion_matrix=${rows},\n    labels=${JSON.stringify(charts.labels)},\n    confidence=${confidence},\n)\nprint(report.overall["r_prime"])`],
  ];
}

/** Show the blocks in an element, each with a button that copies it. */
export function showSnippets(place, blocks) {
  place.hidden = !blocks.length;
  const list = place.querySelector("[data-snippet-list]");
  list.replaceChildren(
    ...blocks.flatMap(([title, text]) => {
      const heading = Object.assign(document.createElement("h2"), { textContent: title });
      const code = Object.assign(document.createElement("pre"), { textContent: text, tabIndex: 0 });
      code.setAttribute("role", "group");
      code.setAttribute("aria-label", title);
      const copy = Object.assign(document.createElement("button"), { type: "button", className: "button quiet", textContent: "Copy" });
      copies(copy, () => text);
      heading.append(" ", copy);
      return [heading, code];
    }),
  );
}
