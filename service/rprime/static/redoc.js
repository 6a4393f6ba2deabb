// Starts Redoc; a file of its own, so that the page needs no inline script.
Redoc.init("openapi.json", { hideDownloadButton: false }, document.getElementById("redoc"));
