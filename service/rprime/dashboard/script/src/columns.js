// A CSV file of predictions whose columns have other names: the reader says which is which.
const WANTED = [
  ["y_true", "True class", /true|truth|label|target|actual|gold|expected/i],
  ["y_pred", "Predicted class", /pred|guess|output|answer/i],
];

/** The names of the columns, if the text is a table of predictions and no matrix. */
export function columnsOf(text) {
  const [head, ...rows] = text.split(/\r?\n/, 4);
  const separator = [",", "\t", ";"].find((one) => head.includes(one));
  const names = separator ? head.split(separator).map((name) => name.trim().replace(/^"(.*)"$/, "$1")) : [];
  const filled = rows.filter((row) => row.trim());
  // A matrix has numbers alone behind the names of its rows, and as many columns as rows.
  const isTable = names.length > 1 && names.every((name) => name && Number.isNaN(Number(name)));
  const isMatrix = filled.every((row) => row.split(separator).slice(1).every((cell) => !Number.isNaN(Number(cell)))) && names.length > 2;
  return isTable && filled.length && !isMatrix ? names : null;
}

/** A form that asks which columns hold the classes; `use` gets the answer. */
export function askForColumns(names, use) {
  const form = document.createElement("div");
  form.className = "controls";
  const selects = WANTED.map(([key, title, usual], at) => {
    const field = Object.assign(document.createElement("div"), { className: "field" });
    const label = Object.assign(document.createElement("label"), { textContent: title, htmlFor: `column-${key}` });
    const select = Object.assign(document.createElement("select"), { id: `column-${key}` });
    for (const name of names) select.add(new Option(name, name));
    const likely = names.findIndex((name) => usual.test(name));
    select.selectedIndex = likely >= 0 ? likely : at;
    field.append(label, select);
    form.append(field);
    return [key, select];
  });
  const button = Object.assign(document.createElement("button"), { type: "button", className: "button", textContent: "Use these columns" });
  button.addEventListener("click", () => use(Object.fromEntries(selects.map(([key, select]) => [key, select.value]))));
  form.append(button);
  return form;
}
