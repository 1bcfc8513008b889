// What the journal and the states say about the axis: edits as flags, states as rings and diamonds. Pure.
import { Settings } from "../origin.js";
import { counts, firstValue, whole } from "../series.js";
import { count, exact, named } from "../numbers.js";
import { t } from "../words.js";

const PLAYBACK = ["pause", "go", "step", "stop", "save"]; // which change nothing of the run

const plain = (value) => (typeof value === "number" ? exact(value) : typeof value === "string" ? value : JSON.stringify(value));
const bare = (component) => (typeof component === "string" ? component : (component?.type ?? "")).split(":").at(-1);

// The rows of the journal with their branch, and for a `set` the previous value, if the journal has it.
// `settings` are given what they set. A rewind points to the start of its branch; its own row is where it was requested.
export function told(journal, trainer, branches = [], first = firstValue, settings = new Settings()) {
  const landing = (row) => (row.command === "reset" ? 0 : row.command === "rewind" ? (branches.find((one) => one.number === row.branch)?.start ?? row.to) : undefined);
  let branch = 0;
  return journal.filter(([, row]) => row.trainer === undefined || row.trainer === trainer).map(([number, row]) => {
    const told = { number, row, branch, before: undefined, to: landing(row) };
    if (row.command === "rewind") branch = told.branch = row.branch ?? branch;
    if (row.command === "set") told.before = settings.value(whole(row)) ?? first(whole(row));
    settings.take(row, told.to, told.before);
    return told;
  });
}

// What a row changed, as one reads it: "learning rate 0.02 → 0.05".
export function change({ row, before }) {
  if (row.command === "set") return before === undefined ? `→ ${plain(row.value)}` : `${plain(before)} → ${plain(row.value)}`;
  if (row.command === "swap") return `→ ${bare(row.component)}`;
  if (row.command === "attach") return bare(row.hook);
  if (row.command === "rewind") return row.parent === undefined ? "" : t("branch.change", { from: row.parent, to: row.branch });
  if (row.command === "relabel") return `→ ${plain(row.label)}`;
  return "";
}

export function subject({ row, to }) {
  if (row.command === "set") return whole(row);
  if (to !== undefined) return t("back", { from: count(row.iteration), to: count(to) });
  if (row.command === "rewind") return t(row.scale === "epoch" ? "to.epoch" : "to.iteration", { n: count(row.to) });
  if (row.command === "exclude" || row.command === "include" || row.command === "relabel") {
    const rows = row.rows ?? [];
    return `${row.split ?? "training"} ${rows.slice(0, 3).join(", ")}${rows.length > 3 ? ` ${t("and.more", { n: rows.length - 3 })}` : ""}`;
  }
  if (row.command === "step") return `${count(row.count ?? 1)} ${row.scale ?? "iteration"}`;
  return row.name ?? row.slot ?? row.pattern ?? row.cause ?? "";
}

function flagText(told) {
  const { row } = told;
  if (row.command === "set") return `${named(row.pattern)} ${change(told)}`;
  if (row.command === "swap") return `${row.slot} ${change(told)}`;
  if (row.command === "undo") return t("did.undo");
  if (told.to !== undefined) return t("flag.back", { from: count(row.iteration) });
  if (row.rows) return t(`flag.${row.command}`, { n: row.rows.length });
  return t(`flag.${row.command}`, { name: row.name });
}

// Where a row acted: a rewind and a reset where they went back to.
export const place = ({ row, to }) => to ?? row.iteration;

// The edits from outside as flags: {iteration, second, branch, left, text}.
export function flags(rows, alive) {
  return rows.filter(({ row }) => row.command && !PLAYBACK.includes(row.command) && !row.by).map((one) => ({
    iteration: place(one), second: one.to === undefined ? one.row.seconds : undefined, branch: one.branch, time: one.row.time, text: flagText(one), short: shortText(one),
    left: !counts(alive, one.branch, place(one)),
  }));
}

const shortText = ({ row }) => (row.command === "set" ? named(row.pattern) : t(`did.${row.command}`));
