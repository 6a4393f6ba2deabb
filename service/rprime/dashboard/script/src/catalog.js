// The catalog and the operations of the API: narrowed while the reader types.
import { count } from "./numbers.js";

/** Words that people type and that no entry needs to have. */
const FILLERS = new Set(["average", "averaged", "avg", "index", "metric", "of", "rate", "score", "the", "value"]);

export function startCatalog() {
  const form = document.querySelector("[data-catalog]");
  if (!form) return;
  form.hidden = false;
  form.querySelector("button")?.setAttribute("hidden", "");
  const entries = [...document.querySelectorAll("[data-entry]")];
  const found = form.querySelector("[data-found]");
  const show = (words, scope) => {
    let shown = 0;
    for (const entry of entries) {
      const fits =
        (!scope || entry.dataset.scope === scope) && words.every((word) => entry.dataset.entry.includes(word));
      entry.hidden = !fits;
      shown += fits;
    }
    return shown;
  };
  const narrow = () => {
    const words = form.elements.q.value.toLowerCase().split(/[\s-]+/).filter(Boolean);
    const scope = form.elements.scope?.value ?? "";
    const needed = words.filter((word) => !FILLERS.has(word));
    const shown = show(words, scope) || (needed.length && show(needed, scope));
    found.textContent = shown ? `${count(shown)} of ${count(entries.length)}` : "Nothing fits: try fewer words.";
    const query = new URLSearchParams(Object.entries({ q: form.elements.q.value, scope }).filter(([, v]) => v));
    history.replaceState(null, "", (query.size ? `?${query}` : location.pathname) + location.hash);
  };
  const given = new URLSearchParams(location.search);
  form.elements.q.value = given.get("q") ?? "";
  if (form.elements.scope) form.elements.scope.value = given.get("scope") ?? "";
  form.addEventListener("input", narrow);
  form.addEventListener("submit", (event) => event.preventDefault());
  narrow();
}
