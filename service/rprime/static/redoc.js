// Starts Redoc; a file of its own, so that the page needs no inline script.
function complete() {
  // They follow headings of the second level.
  for (const heading of document.querySelectorAll("#redoc h5")) heading.ariaLevel = "3";
}

Redoc.init("openapi.json", { scrollYOffset: ".bar" }, document.getElementById("redoc"), complete);
