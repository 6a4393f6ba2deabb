// The switch between light and dark. Charts listen to `themechange`.
const KEY = "rprime-theme";

export const isDark = () => {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
};

const announce = () => document.dispatchEvent(new CustomEvent("themechange"));

const label = (button) => {
  const other = isDark() ? "light" : "dark";
  button.setAttribute("aria-label", `Switch to ${other} colours`);
  button.title = `Switch to ${other} colours`;
};

export function startTheme() {
  const button = document.querySelector("[data-theme-switch]");
  if (!button) return;
  button.hidden = false;
  label(button);
  button.addEventListener("click", () => {
    const theme = isDark() ? "light" : "dark";
    document.documentElement.dataset.theme = theme;
    try {
      localStorage.setItem(KEY, theme);
    } catch {
      // Then it holds for this page alone.
    }
    label(button);
    announce();
  });
  // Paper is light: charts are drawn again for it, and then as they were.
  let chosen;
  addEventListener("beforeprint", () => {
    chosen = document.documentElement.dataset.theme;
    document.documentElement.dataset.theme = "light";
    announce();
  });
  addEventListener("afterprint", () => {
    if (chosen) document.documentElement.dataset.theme = chosen;
    else delete document.documentElement.dataset.theme;
    announce();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    label(button);
    announce();
  });
}
