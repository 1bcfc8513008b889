// What charts show of each address: its line, and its values smoothed. It is made anew within a few milliseconds a frame, the address that
// has waited longest first, so that hundreds of series never share one long task; until then an address keeps what it had.
import { smoothed } from "../series.js";
import { visible } from "./paint.js";

const DENSE = 100; // points from which on a curve is smoothed

const shown = new Map();
let turn = 0;

export const shownOf = (address) => shown.get(address) ?? null;

// Settings are steps; values of every iteration are smoothed; evaluations are raw.
function kindOf(entry, line) {
  if (entry.settable) return "steps";
  return (line?.length ?? 0) >= DENSE && !/\.(validation|test)\./.test(entry.address) ? "dense" : "sparse";
}

function make(entry, found, factor) {
  const line = found.alive, kind = kindOf(entry, line), dense = kind === "dense";
  const over = (one) => (found.wall ? one.second : one.x); // a pause is no distance
  const left = found.left.map((one) => ({ ...one, smooth: dense && one.length >= DENSE / 4 ? smoothed(one.value, factor * 0.9, over(one)) : one.value }));
  turn += 1;
  return { found, factor, line, kind, left, turn, values: dense ? smoothed(line.value, factor, over(line)) : (line?.value ?? null) };
}

// Take over the lines of a scene until a moment, at least one of them; return the addresses that have to wait.
export function refresh(entries, found, factor, until) {
  const stale = entries.filter(({ address }) => found.get(address) && (shown.get(address)?.found !== found.get(address) || shown.get(address).factor !== factor));
  stale.sort((one, other) => (shown.get(one.address)?.turn ?? 0) - (shown.get(other.address)?.turn ?? 0));
  let done = 0;
  while (done < stale.length && (!done || performance.now() < until)) {
    const entry = stale[done];
    shown.set(entry.address, make(entry, found.get(entry.address), factor));
    done += 1;
  }
  return new Set(stale.slice(done).map((entry) => entry.address));
}

// The lowest and the highest value of what is shown of an address in a part of the axis.
export function extremes(own, axis, log) {
  const spans = [own.line, ...own.left].map((line) => (line ? visible(line, axis.low, axis.high) : [0, 0]));
  const key = `${spans} ${log}`;
  if (own.key === key) return own.bounds;
  let low = Infinity, high = -Infinity;
  const look = (values, [from, to]) => {
    for (let i = from; i < to; i++) {
      const value = values[i];
      if (value - value === 0 && !(log && value <= 0)) {
        if (value < low) low = value;
        if (value > high) high = value;
      }
    }
  };
  if (own.line) for (const values of [own.line.value, own.line.low, own.line.high]) look(values, spans[0]);
  own.left.forEach((one, i) => look(one.value, spans[i + 1]));
  return Object.assign(own, { key, bounds: [low, high] }).bounds;
}
