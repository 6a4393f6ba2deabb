// Builds what the package carries: `npm ci && npm run build`.
//   ../static/{dashboard,theme}.js         the scripts of the pages, bundled
//   ../../data/formulas.json               every formula of the catalog, TeX to MathML
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { build } from "esbuild";
import temml from "temml";

// A test asks whether the bundle was built from the sources that are there.
const digest = createHash("sha256");
for (const name of readdirSync("src").sort()) digest.update(readFileSync(`src/${name}`));
digest.update(readFileSync("package-lock.json"));

await build({
  entryPoints: ["src/dashboard.js", "src/theme.js"],
  outdir: "../static",
  bundle: true,
  minify: true,
  charset: "utf8",
  target: ["es2022"],
  legalComments: "none",
  banner: {
    js: `/* Built by \`npm run build\` in dashboard/script; sources: ${digest.digest("hex")} */`,
  },
  logLevel: "info",
});

// Letters that stand together are one name, as TPR, unless they are a command or text already.
const upright = (tex) =>
  tex.replace(/\\(?:text|mathrm)\{[^}]*\}|\\[A-Za-z]+|[A-Za-z]{2,}/g, (found) =>
    found.startsWith("\\") ? found : `\\mathrm{${found}}`,
  );
// The policy of the pages allows no style attributes; the browser's own are right for these.
const plain = (mathml) => mathml.replace(/ (?:style|class)="[^"]*"/g, "");
if (process.argv.includes("--scripts")) process.exit(0);
const catalog = JSON.parse(
  execFileSync("sh", ["../../../../.ci/venv", "rprime", "indices", "--json"], { maxBuffer: 1 << 26 }),
);
const formulas = Object.fromEntries(
  [...new Set(catalog.items.map((entry) => entry.tex))]
    .sort()
    .map((tex) => [tex, plain(temml.renderToString(upright(tex), { displayMode: true, throwOnError: true }))]),
);
writeFileSync("../../data/formulas.json", `${JSON.stringify(formulas, null, 1)}\n`);
