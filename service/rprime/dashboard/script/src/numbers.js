// Numbers as the server writes them: four decimals, thousands separated, a true minus.
const MINUS = "\u2212";
const fixed = new Intl.NumberFormat("en", { minimumFractionDigits: 4, maximumFractionDigits: 4 });
const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 4 });

const signed = (text, value) => (value < 0 && /[1-9]/.test(text) ? MINUS + text : text);

export const decimal = (value) =>
  value === null || value === undefined ? "\u2013" : signed(fixed.format(Math.abs(value)), value);
export const count = (value) => whole.format(value);
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
export const brief = (value) => short.format(value);
export const bound = (value) => signed(whole.format(Math.abs(value)), value);
export const percent = (share) => `${(100 * share).toFixed(2)} %`;
export const items = (number) => `${count(number)} ${number === 1 ? "item" : "items"}`;
/** Shorten a name in its middle: names of classes often differ in their last characters. */
export const clipped = (text, most) => {
  const signs = [...text];
  const tail = Math.floor((most - 1) / 2);
  return signs.length > most ? [...signs.slice(0, most - 1 - tail), "…", ...signs.slice(-tail)].join("") : text;
};

/** A round step that divides a range into up to five parts. */
export function stepOf(low, high) {
  const part = (high - low) / 5;
  const ten = 10 ** Math.floor(Math.log10(part));
  return [1, 2, 5, 10].map((n) => n * ten).find((step) => step >= part * 0.999);
}

/** Keep places at least a gap apart: from the first downwards, then from the end back. */
export function apart(places, gap, end) {
  const order = [...places.keys()].sort((a, b) => places[a] - places[b]);
  const found = [...places];
  order.reduce((last, i) => (found[i] = Math.max(found[i], last + gap)), -Infinity);
  order.reduceRight((last, i) => (found[i] = Math.min(found[i], last - gap)), end + gap);
  return found;
}
