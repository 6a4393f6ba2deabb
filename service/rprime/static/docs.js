// Starts Swagger UI; a file of its own, so that the page needs no inline script.
SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#swagger-ui",
  deepLinking: true,
  displayRequestDuration: true,
  tryItOutEnabled: true,
  // No outbound request: the default asks a validator on another host.
  validatorUrl: null,
});
