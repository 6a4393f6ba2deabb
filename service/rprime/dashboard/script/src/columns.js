// A CSV file of predictions whose columns have other names: the reader says which is which.
const WANTED = [
  ["y_true", "True class"],
  ["y_pred", "Predicted class"],
];
const LIKELY = { y_true: /true|truth|label|target|actual|gold|expected/i, y_pred: /pred|guess|output|answer/i };

/** The names of the columns, if the text is a table of predictions and no matrix. */
export function columnsOf(text) {
  const [head, ...rows] = text.split(/\r?\n/, 4);
  const separator = [",", "\t", ";"].find((one) => head.includes(one));
  const names = separator ? head.split(separator).map((name) => name.trim().replace(/^"(.*)"$/, "$1")) : [];
  const filled = rows.filter((row) => row.trim());
  // A matrix has numbers alone behind the names of its rows, and as many columns as rows.
  const isTable = names.length > 1 && names.every((name) => name && Number.isNaN(Number(name)));
  const isMatrix = filled.every((row) => row.split(separator).slice(1).every((cell) => !Number.isNaN(Number(cell)))) && names.length > 2;
  return isTable && filled.length && !isMatrix ? { names, separator } : null;
}

/** The CSV with the names that the service reads. */
export async function renamed(file, { names, separator }, chosen) {
  const header = names.map((name) => WANTED.find(([key]) => chosen[key] === name)?.[0] ?? name);
  const text = await file.text();
  const rest = text.slice(text.search(/\r?\n/));
  return new Blob([header.join(","), separator === "," ? rest : rest.replaceAll(separator, ",")]);
}

/** A form that asks which columns hold the classes; `use` gets the answer. */
export function askForColumns(names, use) {
  const form = document.createElement("div");
  form.className = "controls";
  const selects = WANTED.map(([key, title]) => {
    const field = Object.assign(document.createElement("div"), { className: "field" });
    const label = Object.assign(document.createElement("label"), { textContent: title, htmlFor: `column-${key}` });
    const select = Object.assign(document.createElement("select"), { id: `column-${key}` });
    for (const name of names) select.add(new Option(name, name));
    const likely = names.findIndex((name) => LIKELY[key].test(name));
    select.selectedIndex = likely >= 0 ? likely : Math.min(key === "y_true" ? 0 : 1, names.length - 1);
    field.append(label, select);
    form.append(field);
    return [key, select];
  });
  const button = Object.assign(document.createElement("button"), { type: "button", className: "button", textContent: "Use these columns" });
  button.addEventListener("click", () => use(Object.fromEntries(selects.map(([key, select]) => [key, select.value]))));
  form.append(button);
  return form;
}
