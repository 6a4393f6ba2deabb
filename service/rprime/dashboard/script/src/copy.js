// Buttons that copy, shown where a script runs.

/** Copy a text when a button is pressed, and say so on it. */
export function copies(button, textOf) {
  const name = button.textContent;
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(textOf());
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = name), 2000);
  });
}

/** A command of the API reference. */
export function startCopyCommands() {
  for (const button of document.querySelectorAll("[data-copy-command]"))
    copies(button, () => button.previousElementSibling.textContent);
}

/** The address of the page, for somebody else. */
export function startCopyLink() {
  for (const button of document.querySelectorAll("[data-copy-link]")) copies(button, () => location.href);
}
