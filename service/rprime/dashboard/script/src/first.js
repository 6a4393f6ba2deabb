// First steps: commands that copy, an example project, and a page that follows the first evaluation.
import { copies } from "./copy.js";

const EVERY = 5000;

/** Reload when the first evaluation is stored. */
function follow(projects) {
  const timer = setInterval(async () => {
    if (document.hidden) return;
    const answer = await fetch(projects).catch(() => null);
    if (answer?.ok && (await answer.json()).items.length) location.reload();
    else if (answer?.status === 401) clearInterval(timer);
  }, EVERY);
  return timer;
}

/** Store the versions of the example, each after the one that it is compared with. */
async function load(button, problem) {
  const token = document.querySelector("meta[name='csrf-token']")?.content;
  const headers = { "Content-Type": "application/json", ...(token && { "X-CSRF-Token": token }) };
  button.disabled = true;
  const call = async (address, options) => {
    const answer = await fetch(address, options);
    if (!answer.ok) throw new Error((await answer.json()).detail);
    return answer.json();
  };
  try {
    for (const version of await call(button.dataset.example))
      await call(button.dataset.evaluate, { method: "POST", headers, body: JSON.stringify(version) });
    location.reload();
  } catch (error) {
    problem.textContent = `The example could not be stored: ${error.message}`;
    button.disabled = false;
  }
}

export function startFirst() {
  const first = document.querySelector("[data-projects]");
  if (!first) return;
  for (const button of first.querySelectorAll("[data-copy]"))
    copies(button, () => button.previousElementSibling.textContent);
  const timer = follow(first.dataset.projects);
  first.querySelector("[data-waiting]").hidden = false;
  const example = first.querySelector("[data-example]");
  if (example) {
    example.hidden = false;
    example.addEventListener("click", () => {
      clearInterval(timer);
      load(example, first.querySelector("[role='alert']"));
    });
  }
}
