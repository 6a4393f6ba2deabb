// What a part of a chart says when it is pointed at. Without this script the browser shows its title.
let box;

/** Show lines beside the pointer. */
export function showTip(lines, { clientX, clientY }) {
  box ??= document.body.appendChild(Object.assign(document.createElement("div"), { className: "tip", ariaHidden: "true" }));
  const [title, ...rest] = lines;
  const parts = [Object.assign(document.createElement("strong"), { textContent: title })];
  box.replaceChildren(...parts, ...rest.map((text) => Object.assign(document.createElement("div"), { textContent: text })));
  box.hidden = false;
  const { clientWidth, clientHeight } = document.documentElement;
  const left = clientX + 16 + box.offsetWidth > clientWidth ? clientX - 12 - box.offsetWidth : clientX + 16;
  const top = Math.min(clientY + 16, clientHeight - box.offsetHeight - 8);
  Object.assign(box.style, { left: `${Math.max(8, left)}px`, top: `${top}px` });
}

export function hideTip() {
  if (box) box.hidden = true;
}

/** The part of a chart that is pointed at, with the words that the server gave it. */
const partOf = (event) => event.target.closest?.("svg.figure [data-name]:has(> title), svg.figure [data-tip]");

export function startTips() {
  document.addEventListener("pointermove", (event) => {
    const part = event.pointerType === "mouse" ? partOf(event) : null;
    if (!part) {
      if (!event.target.closest?.("svg[data-cell]")) hideTip();
      return;
    }
    const title = part.querySelector(":scope > title");
    if (title) {
      // Else the browser shows it a second time.
      part.dataset.tip = title.textContent;
      part.setAttribute("aria-label", title.textContent);
      title.remove();
    }
    showTip(part.dataset.tip.split(/[:;] /), event);
  });
}

/** A class that is chosen anywhere is marked everywhere on the page. */
export function startChoice() {
  document.addEventListener("click", (event) => {
    const part = event.target.closest?.("[data-class]");
    if (!part || event.target.closest("a, button, input")) return;
    const again = part.classList.contains("chosen");
    for (const one of document.querySelectorAll("[data-class]")) {
      one.classList.toggle("chosen", !again && one.dataset.class === part.dataset.class);
    }
  });
}
