// Baselines as reference lines of a chart: what predictions without a network reach. Pure.
import { apart } from "./paint.js";

const FAR = 1.5; // spans of the curves: what is further away is told beside the chart, and not drawn
const GAP = 16; // pixels between two labels

// The baselines of an address, as the summary of the run has them: [{name, value}].
export function baselinesOf(results, address) {
  const short = address.slice(address.indexOf(".") + 1);
  return Object.entries(results?.baselines ?? {}).flatMap(([name, values]) => {
    const value = values[address] ?? values[short];
    return Number.isFinite(value) ? [{ name, value }] : [];
  });
}

// All baselines of the series that are shown, each with its series.
export const referencesOf = (items, results) => items.filter((item) => !item.hidden).flatMap((item) => baselinesOf(results, item.entry.address).map((one) => ({ ...one, item })));

// The bounds of a chart with the references that are near its values.
export function widened([low, high], references, log) {
  if (!(high >= low)) return [low, high];
  const f = log ? Math.log : (value) => value, span = f(high) - f(low);
  const near = references.map((one) => one.value).filter((value) => (!log || value > 0) && (span === 0 || (f(value) >= f(low) - FAR * span && f(value) <= f(high) + FAR * span)));
  return [Math.min(low, ...near), Math.max(high, ...near)];
}

// The lines that can be drawn: {text, y, at}, `at` where the label stands.
export function linesOf(references, [low, high], sy, tell) {
  const several = new Set(references.map((one) => one.item)).size > 1;
  const drawn = references.filter(({ value }) => value >= low && value <= high).map((one) => ({ text: `${one.name}${several ? `, ${one.item.name}` : ""} ${tell(one.value)}`, at: sy(one.value), y: sy(one.value) - 5 }));
  return apart(drawn, GAP, 12, sy(low) - 4);
}
