// Before anything is painted: the theme that the reader chose, if any.
try {
  const chosen = localStorage.getItem("rprime-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch {
  // Storage may be closed to us; then the system decides.
}
