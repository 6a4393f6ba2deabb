// Numbers as the server writes them: four decimals, thousands separated, a true minus.
const MINUS = "\u2212";
const fixed = new Intl.NumberFormat("en", { minimumFractionDigits: 4, maximumFractionDigits: 4 });
const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 4 });

const signed = (text, value) => (value < 0 && /[1-9]/.test(text) ? MINUS + text : text);

export const decimal = (value) =>
  value === null || value === undefined ? "\u2013" : signed(fixed.format(Math.abs(value)), value);
export const count = (value) => whole.format(value);
export const percent = (share) => `${(100 * share).toFixed(2)} %`;
export const items = (number) => `${count(number)} ${number === 1 ? "item" : "items"}`;
