// Where the value of a setting comes from, as the journal tells it. Pure.
import { matcher } from "./charts/lanes.js";
import { whole } from "./series.js";

// Whether a pattern of a command is about an entry.
export const fits = (pattern, entry) => pattern === entry.address || (/[*<]/.test(pattern) && matcher(pattern)(entry));

// Texts are kept in the kernel's words, numbers as they were set.
const holds = (set, { value }) => typeof set.value !== "number" || typeof value !== "number" || set.value === value;

// The settings that are in force after some commands: an undo takes back the last that a person gave.
function inForce(done) {
  const given = [];
  for (const one of done) {
    const last = one.undoes ? given.findLastIndex(({ by }) => !by) : -1;
    if (last >= 0) given.splice(last, 1);
    else if (!one.undoes) given.push(one);
  }
  return given;
}

// The settings of a trainer, as the rows of its journal follow one another. What a rewind leaves is taken back, also an undo; whether
// the state that it goes back to is of before or after a command of the same iteration, the journal does not tell.
export class Settings {
  done = [];
  given = [];

  take(row, to, before) {
    const { command, iteration: at } = row;
    if (command === "set") this.add({ pattern: whole(row), value: row.value, at, by: row.by, before });
    else if (command === "undo" && (row.undoes ?? "set") === "set") this.add({ undoes: true, at });
    if (to !== undefined) this.done = this.done.filter((one) => one.at <= to).map((one) => ({ ...one, perhaps: one.perhaps || one.at === to }));
    if (to !== undefined) this.given = inForce(this.done);
  }

  add(one) {
    this.done.push(one);
    if (one.undoes) this.given = inForce([...this.given, one]);
    else this.given.push(one);
  }

  // The last value that was given to an address.
  value(address) {
    return this.given.findLast(({ pattern }) => pattern === address)?.value;
  }

  // The setting that gave an entry its present value, or null.
  origin(entry) {
    const last = (given) => given.findLast((one) => fits(one.pattern, entry) && holds(one, entry));
    return last(this.given) ?? last(inForce(this.done.filter(({ perhaps }) => !perhaps))) ?? null;
  }
}
