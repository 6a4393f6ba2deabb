// Starts Swagger UI; a file of its own, so that the page needs no inline script.
const plugin = ({ React: { createElement } }) => ({
  components: {
    // The frame of the page has the landmarks and the title; the default layout has its own.
    Operations: ({ getComponent }) =>
      createElement(
        "div",
        { className: "swagger-ui" },
        createElement(getComponent("AuthorizeBtnContainer", true)),
        createElement(getComponent("errors", true)),
        createElement("h2", null, "Operations"),
        createElement(getComponent("operations", true)),
      ),
    // A link in a button, as the default has it, cannot be reached by the keyboard.
    DeepLink: ({ text }) => createElement("span", null, text),
  },
});

// What it leaves without a name, or out of reach of the keyboard.
function complete() {
  const unnamed = (selector) => document.querySelectorAll(`#swagger-ui ${selector}:not([aria-label])`);
  for (const field of unnamed("textarea")) field.ariaLabel = "Request body";
  for (const file of unnamed("[type=file]")) file.ariaLabel = "File";
  for (const choice of unnamed("select")) choice.ariaLabel = "Example";
  for (const text of document.querySelectorAll("#swagger-ui pre")) text.tabIndex = 0;
  search();
}
// Operations without the words of the search are left out.
function search() {
  const words = document.getElementById("operation").value.toLowerCase().split(/\s+/);
  for (const operation of document.querySelectorAll("#swagger-ui .opblock")) {
    const text = operation.querySelector(".opblock-summary").textContent.toLowerCase();
    operation.classList.toggle("left-out", !words.every((word) => text.includes(word)));
  }
}
document.getElementById("operation").addEventListener("input", search);

function show() {
  document.getElementById("loading").hidden = true;
  document.getElementById("search").hidden = false;
}
new MutationObserver(complete).observe(document.getElementById("swagger-ui"), { childList: true, subtree: true });

// Swagger UI resolves all that an operation refers to before it shows it. For each of 160 indices
// this takes most of the time, and they all have the same form.
function withoutIndices(contract) {
  for (const schema of [contract.components.schemas.Overall, contract.components.schemas.ClassIndices]) {
    delete schema.properties;
  }
  return contract;
}

fetch("openapi.json")
  .then((answer) => answer.json())
  .then((contract) =>
    SwaggerUIBundle({
      spec: withoutIndices(contract),
      dom_id: "#swagger-ui",
      layout: "Operations",
      plugins: [plugin],
      deepLinking: true,
      displayRequestDuration: true,
      tryItOutEnabled: true,
      onComplete: show,
      syntaxHighlight: false,
      // A field shows text of a kind of JSON, as its lines are, as one JSON string.
      requestInterceptor: (request) => {
        const lines = request.headers["Content-Type"] === "application/x-ndjson";
        if (lines && request.body.startsWith('"')) request.body = JSON.parse(request.body);
        return request;
      },
      // No outbound request: the default asks a validator on another host.
      validatorUrl: null,
    }),
  );
