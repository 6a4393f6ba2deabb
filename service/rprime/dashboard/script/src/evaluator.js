// The evaluator: what is pasted, typed or dropped becomes a report at once.
import { remember } from "./address.js";
import { askForColumns, columnsOf } from "./columns.js";
import { startHeat } from "./heat.js";
import { showSnippets, snippetsOf } from "./snippets.js";

const PAUSE = 400;
const FILES = {
  arrow: "application/vnd.apache.arrow.stream",
  parquet: "application/vnd.apache.parquet",
  npz: "application/x-npz",
};
const PREDICTIONS = /(^|[,;\t"])y_true\b/;
const OPTIONS = ["axis", "confidence", "family"];
const SELECTION = ["order", "name", "page", "cells"];
/** What people paste or drop that has no counts, and what to give in its place. */
const NO_MATRIX = [
  [/precision\s+recall\s+f1-score/, "This is a classification report", "It has no counts of confusions. Paste what confusion_matrix(y_true, y_pred) prints."],
  [/^\uFFFDPNG|^GIF8|^\uFFFD\uFFFD\uFFFD|^%PDF/, "This is an image or a document", "Paste the numbers of the matrix, or drop a file of predictions."],
  [/\0/, "This is a binary file", "Matrices are text; predictions are CSV, Arrow, Parquet or NPZ."],
];

export function startEvaluator() {
  const form = document.querySelector("[data-evaluator]");
  if (!form) return;
  const report = document.querySelector("[data-report]");
  const [text, file] = [form.querySelector("textarea"), form.querySelector("input[type=file]")];
  const [status, problem] = [form.querySelector("[data-status]"), form.querySelector("[data-problem]")];
  let timer = 0;
  let running = null;
  // What is evaluated again with other options: what was typed, or the last file.
  let repeat = () => evaluateText();
  let selection = {};

  const options = () => {
    const { axis, confidence, family } = form.elements;
    return {
      confidence: Number(confidence.value),
      ...(axis.value !== "rows_are_true" && { axis: axis.value }),
      ...(family.value !== "summary" && { families: [family.value] }),
    };
  };
  /** Stop what is under way, and take back what was said of earlier evidence. */
  const clear = () => {
    clearTimeout(timer);
    running?.abort();
    report.classList.remove("stale");
    problem.hidden = true;
    text.removeAttribute("aria-invalid");
    status.textContent = "";
  };
  const evaluate = async (body, type, more = {}) => {
    clearTimeout(timer);
    running?.abort();
    const mine = (running = new AbortController());
    form.setAttribute("aria-busy", "true");
    report.classList.add("stale");
    status.textContent = "Evaluating…";
    // The orientation is that of a matrix: predictions have none.
    const { axis, ...rest } = options();
    const asked = type === "text/plain" && axis ? { axis, ...rest } : { ...rest, ...more };
    const query = new URLSearchParams({ ...selection, request: JSON.stringify(asked) });
    try {
      const token = document.querySelector("meta[name='csrf-token']")?.content;
      const headers = { "Content-Type": type, ...(token && { "X-CSRF-Token": token }) };
      const answer = await fetch(`${form.action}?${query}`, { method: "POST", body, headers, signal: mine.signal });
      if (answer.ok) show(await answer.text());
      else explain(await answer.json());
      if (answer.status === 401) problem.append(signIn());
    } catch (error) {
      if (error.name === "AbortError") return;
      explain({ title: "The service gave no answer", detail: "It may be restarting: try again in a moment." });
    } finally {
      if (running === mine) form.removeAttribute("aria-busy");
    }
  };
  const show = (html) => {
    form.querySelector("[data-sample]")?.remove();
    problem.hidden = true;
    text.removeAttribute("aria-invalid");
    // From our own server, which escapes every foreign text.
    report.innerHTML = html;
    report.classList.remove("stale");
    status.textContent = "The report is up to date.";
    startHeat(report);
    offer();
  };
  /** Show other classes of the table, and stay where the reader is. */
  const select = async (asked, place) => {
    selection = asked;
    remember(Object.fromEntries(SELECTION.map((name) => [name, asked[name] ?? ""])));
    await repeat();
    report.querySelector(place)?.focus({ preventScroll: true });
  };
  const offer = () => {
    const charts = report.querySelector("#charts");
    const service = new URL("../evaluate", form.action).href;
    showSnippets(form.querySelector("[data-snippets]"), snippetsOf(charts && JSON.parse(charts.textContent), options().confidence, service));
  };
  const explain = ({ title, code, detail, errors = [] }) => {
    const heading = code === "invalid_request" ? "This cannot be evaluated" : title;
    const lines = errors.map((error) => [placeOf(error.pointer), error.detail]);
    problem.replaceChildren(element("strong", heading), ...(lines.length ? [listOf(lines)] : [element("p", detail)]));
    if (report.childElementCount) problem.append(element("p", "The report below is still that of the matrix before."));
    problem.hidden = false;
    text.setAttribute("aria-invalid", "true");
    report.classList.remove("stale");
    status.textContent = "";
  };
  const evaluateText = () => {
    const given = text.value;
    if (!given.trim()) {
      clear();
      report.replaceChildren();
      offer();
      text.placeholder = status.textContent = "Paste a matrix to evaluate it.";
      return undefined;
    }
    if (refused(given)) return undefined;
    const head = given.slice(0, given.search(/\r?\n|$/));
    return evaluate(given, PREDICTIONS.test(head) ? "text/csv" : "text/plain");
  };
  const refused = (given) => {
    const found = NO_MATRIX.find(([pattern]) => pattern.test(given));
    if (found) {
      clear();
      explain({ title: found[1], detail: found[2] });
    }
    return Boolean(found);
  };
  /** Evaluate a file; the field says so, since it does not show it. */
  const evaluateFile = (body, type, name, more) => {
    text.value = "";
    text.placeholder = `The report below is about ${name}.`;
    return evaluate(body, type, more);
  };
  const takeNew = (given) => {
    selection = {};
    clear();
    return take(given);
  };
  const take = async (given) => {
    repeat = () => take(given);
    const suffix = given.name.split(".").pop().toLowerCase();
    if (FILES[suffix]) return evaluateFile(given, FILES[suffix], given.name);
    const head = await given.slice(0, 4096).text();
    if (PREDICTIONS.test(head.split(/\r?\n/, 1)[0])) return evaluateFile(given, "text/csv", given.name);
    if (refused(head)) return undefined;
    const names = columnsOf(head);
    if (names) return ask(given, names);
    text.value = await given.text();
    repeat = evaluateText;
    return evaluateText();
  };

  const ask = (given, names) => {
    explain({ title: `Which columns of ${given.name} hold the classes?`, detail: "The file has no columns y_true and y_pred." });
    const use = (columns) => {
      repeat = () => evaluateFile(given, "text/csv", given.name, { columns });
      return repeat();
    };
    problem.append(askForColumns(names, use));
  };

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    repeat();
  });
  text.addEventListener("input", () => {
    clearTimeout(timer);
    file.value = "";
    repeat = evaluateText;
    selection = {};
    timer = setTimeout(evaluateText, PAUSE);
  });
  for (const name of OPTIONS) {
    form.elements[name].addEventListener("change", ({ target }) => {
      const usual = [...target.options].find((option) => option.defaultSelected) ?? target.options[0];
      remember({ [name]: target.value === usual.value ? "" : target.value });
      repeat();
    });
  }
  report.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href^='?']");
    if (!link) return;
    event.preventDefault();
    const place = link.closest("[data-heat-modes]") ? "[data-heat-modes] [aria-current]" : link.rel ? `.pages a[rel=${link.rel}]` : link.matches(".sort") ? "[aria-sort] .sort" : "#class-name";
    select(Object.fromEntries(new URLSearchParams(link.search)), place);
  });
  report.addEventListener("submit", (event) => {
    event.preventDefault();
    select(Object.fromEntries(new FormData(event.target)), "#class-name");
  });
  file.addEventListener("change", () => file.files.length && takeNew(file.files[0]));
  form.addEventListener("dragover", (event) => {
    event.preventDefault();
    form.classList.add("dropping");
  });
  for (const over of ["dragleave", "drop"]) form.addEventListener(over, () => form.classList.remove("dropping"));
  form.addEventListener("drop", (event) => {
    event.preventDefault();
    if (!event.dataTransfer.files.length) return;
    file.files = event.dataTransfer.files;
    takeNew(file.files[0]);
  });
  const shared = [...new URLSearchParams(location.search)].filter(([name, value]) => OPTIONS.includes(name) && form.elements[name].querySelector(`option[value="${CSS.escape(value)}"]`));
  for (const [name, value] of shared) form.elements[name].value = value;
  if (shared.length) repeat();
  offer();
}

/** A link beside the evaluator, which may stand behind a prefix. */
const signIn = () => Object.assign(element("a", "Sign in"), { href: "sign-in" });

const element = (tag, text) => Object.assign(document.createElement(tag), { textContent: text });

/** A JSON pointer as people count: from one. */
function placeOf(pointer) {
  const [, member = "", ...rest] = pointer.split("/");
  const [row, column] = rest.map((part) => Number(part) + 1);
  if (member === "confusion_matrix" && row) return `Matrix, row ${row}${column ? `, column ${column}` : ""}`;
  return pointer === "" ? "Request" : pointer.slice(1).replaceAll("/", ", ").replaceAll("_", " ");
}

function listOf(lines) {
  const list = document.createElement("ul");
  for (const [place, detail] of lines) {
    const line = document.createElement("li");
    line.append(element("b", place), `: ${detail}`);
    list.append(line);
  }
  return list;
}
