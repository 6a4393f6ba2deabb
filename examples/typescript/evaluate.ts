// Asks a service from TypeScript, with types that are made from its OpenAPI document:
//
//     npm ci && npm run generate && npm run build && node evaluate.js http://127.0.0.1:8000
//
// It ends with 0 where the gate passes, 1 where it fails, 2 if the request is wrong, 3 where the
// gate is inconclusive, 4 where there is no verdict, 5 where the gate fails without being judged.
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

const server = process.argv[2] ?? "http://127.0.0.1:8000";
const key = process.env["RPRIME_KEY"];
const client = createClient<paths>({
  baseUrl: server,
  headers: key ? { Authorization: `Bearer ${key}` } : {},
});

async function main(): Promise<number> {
  // With its type named, a misspelt member does not compile.
  const body: components["schemas"]["MatrixRequest"] = {
    labels: ["cat", "dog"],
    confusion_matrix: [
      [480, 20],
      [15, 485],
    ],
    indices: ["accuracy", "recall"],
    gates: { rules: [{ index: "recall", classes: "all", min_value: 0.9 }] },
  };
  const { data, error, response } = await client.POST("/v1/evaluate", { body });
  if (error) {
    // A problem of RFC 9457: `code` for programs, `errors` with the places that are wrong.
    console.error(error.code, error.detail, error.errors ?? []);
    return response.status < 500 && response.status !== 429 ? 2 : 4;
  }
  // Reports also come as Markdown and the like, to those who ask for it.
  if (typeof data !== "object") {
    console.error("no verdict: this is no report");
    return 4;
  }
  console.log("accuracy:", data.overall["accuracy"]?.value);
  for (const [label, found] of Object.entries(data.per_class)) {
    console.log(`${label}: ${found.correct} of ${found.support} found`);
  }
  console.log("verdict:", data.gate?.verdict, "undecided:", data.gate?.undecided);
  switch (data.gate?.verdict) {
    case "pass":
      return 0;
    case "fail":
      return data.gate.judged ? 1 : 5;
    case "no_baseline":
      return 5;
    case "inconclusive":
    case "no_rules":
      return 3;
    default:
      return 4;
  }
}

try {
  process.exitCode = await main();
} catch (outage) {
  console.error("no verdict, the service gives no answer:", outage);
  process.exitCode = 4;
}
