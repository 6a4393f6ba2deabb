// What a number means, one hover, focus or tap away; a click leads to the catalog.
const DELAY = 200;

export function startDefinitions() {
  const box = document.createElement("div");
  Object.assign(box, { id: "definition", className: "definition", popover: "manual" });
  box.setAttribute("role", "tooltip");
  document.body.append(box);
  let opener = null;
  let timer = 0;

  const close = () => {
    clearTimeout(timer);
    if (!opener) return;
    opener.removeAttribute("aria-describedby");
    opener = null;
    box.hidePopover();
  };
  const open = (link) => {
    const source = document.querySelector(`template[data-definition="${CSS.escape(link.dataset.define)}"]`);
    if (!source || opener === link) return;
    close();
    box.replaceChildren(source.content.cloneNode(true));
    opener = link;
    link.setAttribute("aria-describedby", box.id);
    box.showPopover();
    place(box, link.getBoundingClientRect());
  };
  const linkOf = (event) => (event.target instanceof Element ? event.target.closest("[data-define]") : null);

  document.addEventListener("pointerover", (event) => {
    const link = linkOf(event);
    clearTimeout(timer);
    if (event.pointerType !== "mouse") return;
    if (link) timer = setTimeout(() => open(link), DELAY);
    else if (!box.contains(event.target)) timer = setTimeout(close, DELAY);
  });
  document.addEventListener("focusin", (event) => {
    const link = linkOf(event);
    if (link?.matches(":focus-visible")) open(link);
    else close();
  });
  document.addEventListener("click", (event) => {
    const link = linkOf(event);
    // The first tap explains, the second one follows the link.
    if (link && event.pointerType === "touch" && opener !== link) {
      event.preventDefault();
      open(link);
    } else if (!box.contains(event.target)) close();
  });
  document.addEventListener("keydown", (event) => event.key === "Escape" && close());
  document.addEventListener("scroll", () => opener && place(box, opener.getBoundingClientRect()), { passive: true });
}

// Below the link; where there is no room, beside it, for what stands above it is of another card.
function place(box, at) {
  const { clientWidth, clientHeight } = document.documentElement;
  const { offsetWidth: width, offsetHeight: height } = box;
  const aside = [at.right + 8, at.left - width - 8].find((left) => left >= 8 && left + width + 8 <= clientWidth);
  const fits = at.bottom + height + 16 <= clientHeight;
  const beside = !fits && aside !== undefined;
  const left = beside ? aside : Math.max(8, Math.min(at.left, clientWidth - width - 8));
  const above = beside ? Math.min(at.top, clientHeight - height - 8) : at.top - height - 8;
  Object.assign(box.style, { left: `${left}px`, top: `${fits ? at.bottom + 8 : Math.max(8, above)}px` });
}
