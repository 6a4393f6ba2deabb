// The switch between light and dark.
const KEY = "rprime-theme";

export const isDark = () => {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
};

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
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    label(button);
  });
}
