// Which charts there are: the lanes a page begins with, and how an address with wildcards and tags finds its series. Pure.
import { tail, title } from "../numbers.js";
import { t } from "../words.js";

const NUMERIC = ["number", "whole"];
const BETTER_HIGH = /(accuracy|precision|recall|f1|score|r2|auc)$/;
const MOST = 500; // series of one pattern
const SPLITS = ["training", "validation", "test"]; // and others by their names
const OTHERWISE = /^epoch\.|(?:^|\.)skipped$/; // means over an epoch are of the same curve, and skipped steps of none
const USUAL = 12; // lanes that nobody has asked for
const TALL = [274, 194, 194, 144]; // pixels, by worth

export const numeric = (entry) => NUMERIC.includes(entry.type);

// A pattern as the kernel reads it: `*` within a level, `**` any levels, `<tag>` of the node before.
export function matcher(pattern) {
  const tags = [...pattern.matchAll(/<([^>]*)>/g)].flatMap(([, names]) => names.split(",").map((name) => name.trim()));
  const levels = pattern.replace(/<[^>]*>/g, "").split(".");
  const escaped = (text) => text.replace(/[$()+?[\\\]^{|}-]/g, "\\$&");
  let source = "";
  for (const [i, level] of levels.entries()) {
    const dot = i === levels.length - 1 ? "" : "\\.";
    if (level === "**") source += dot ? "(?:[^.]+\\.)*" : ".+";
    else source += escaped(level).replaceAll("**", ".*").replaceAll("*", "[^.]*") + dot;
  }
  const found = new RegExp(`^${source}$`);
  return (entry) => found.test(entry.address) && tags.every((tag) => (entry.tags ?? []).includes(tag));
}

const isPattern = (text) => /[*<]/.test(text);

// The numeric addresses of a text: an address, a pattern, or a tag.
export function found(entries, text, trainer = "") {
  const numbers = entries.filter(numeric);
  if (!isPattern(text)) {
    const exact = numbers.filter((entry) => entry.address === text || entry.address === `${trainer}.${text}`);
    return exact.length ? exact : numbers.filter((entry) => entry.address.endsWith(`.${text}`) || (entry.tags ?? []).includes(text));
  }
  const fits = matcher(text), within = trainer ? matcher(`${trainer}.${text}`) : fits;
  return numbers.filter((entry) => fits(entry) || within(entry)).slice(0, MOST);
}

// The splits of a trainer, below which its results are published.
const splitsOf = (entries, trainer) => [...SPLITS, ...entries.map(({ address }) => address.split(".")).filter(([of, data, , rows]) => of === trainer && data === "data" && rows === "rows").map((levels) => levels[2])];

// What an address measures, below its split: {part: "average.loss", of: "loss"}; of costs, `of` is "cost" with the layer.
function measureOf(entry, trainer, splits) {
  const [of, split, ...below] = entry.address.split("."), part = below.join(".");
  if (of !== trainer || entry.settable || !splits.includes(split) || !part || OTHERWISE.test(part)) return null;
  return { part, of: /(?:^|\.)(cost\..+)$/.exec(part)?.[1] ?? below.at(-1) };
}

const worth = (of) => (of === "loss" ? 0 : of.startsWith("cost.") ? 3 : BETTER_HIGH.test(of) ? 1 : 2);

// The lanes that a page begins with, what a run is about: its loss, each metric, each cost, the learning rate.
export function usual(entries, trainer) {
  const mine = entries.filter((entry) => numeric(entry) && entry.address.startsWith(`${trainer}.`)), splits = splitsOf(mine, trainer);
  const parts = new Map(trainer ? [["loss", new Set(["loss"])]] : []); // of each measure
  for (const { part, of } of mine.map((entry) => measureOf(entry, trainer, splits)).filter(Boolean)) parts.set(of, (parts.get(of) ?? new Set()).add(part));
  const lanes = [...parts].sort(([one], [other]) => worth(one) - worth(other)).slice(0, USUAL).map(([of, below]) => ({
    id: of, patterns: [...below].map((part) => `${trainer}.*.${part}`), log: [0, 3].includes(worth(of)), tall: TALL[worth(of)], ...(worth(of) === 3 ? { title: t("lane.cost", { name: of.slice(5) }) } : {}),
  }));
  const rates = mine.filter(({ address }) => /^[^.]+\.(optimiser|optimisers\.[^.]+)\.learning_rate$/.test(address)).map((entry) => entry.address);
  return [...lanes, ...(rates.length ? [{ id: "rate", patterns: rates, log: true, tall: 76 }] : [])];
}

const known = new Map(); // by patterns and trainer: the series, as long as the entries are the same

// The series of a lane: entries in the order of its patterns, each once; the same list as long as nothing changes.
export function series(lane, entries, trainer) {
  const key = `${trainer} ${lane.patterns.join(" ")}`, last = known.get(key);
  if (last?.entries === entries) return last.made;
  const seen = new Map();
  for (const pattern of lane.patterns) for (const entry of found(entries, pattern, trainer)) seen.set(entry.address, entry);
  known.set(key, { entries, made: [...seen.values()] });
  return known.get(key).made;
}

// The shortest names that tell several addresses apart.
export function shortNames(addresses) {
  if (!addresses.length) return [];
  if (addresses.length === 1) return [addresses[0].replace(".cost.", ".").split(".").at(-2) ?? addresses[0]];
  const levels = addresses.map((address) => address.split("."));
  const least = Math.min(...levels.map((one) => one.length));
  let head = 0, end = 0;
  while (head < least - 1 && levels.every((one) => one[head] === levels[0][head])) head += 1;
  while (end < least - head - 1 && levels.every((one) => one.at(-1 - end) === levels[0].at(-1 - end))) end += 1;
  return levels.map((one) => one.slice(head, one.length - end).join("."));
}

export function laneTitle(lane, entries) {
  if (lane.title) return lane.title;
  const addresses = entries.map((entry) => entry.address);
  const tails = new Set((addresses.length ? addresses : lane.patterns).map((address) => tail(address)));
  return tails.size === 1 ? title([...tails][0]) : lane.patterns.map((pattern) => tail(pattern, 2)).slice(0, 2).join(", ");
}

export const betterHigh = (address) => BETTER_HIGH.test(address);
const SHARE = /accuracy$|^[^.]+\.system\.(phases\.|gpu\d+\.busy$)/; // also where no unit is known, as of a run that has ended
export const asPercent = (entry) => entry.unit === "share" || entry.unit === "%" || SHARE.test(entry.address);

// The first series of a lane: the validation if there is one.
export const leading = (all) => Math.max(0, all.findIndex((one) => /(^|\.)validation\./.test(one.address)));

export const completions = (entries, text, trainer) => {
  const wanted = text.toLowerCase().replaceAll(" ", "_");
  const numbers = entries.filter(numeric);
  const rank = (entry) => {
    const at = entry.address.toLowerCase().indexOf(wanted);
    return at < 0 ? Infinity : (tail(entry.address).startsWith(wanted) ? 0 : 100) + (entry.settable ? 50 : 0) + entry.address.length / 1000;
  };
  const plain = isPattern(text) ? found(entries, text, trainer).map((entry) => ({ value: entry.address }))
    : numbers.filter((entry) => rank(entry) < Infinity).sort((a, b) => rank(a) - rank(b)).map((entry) => ({ value: entry.address }));
  const many = isPattern(text) && plain.length > 1 ? [{ value: text, note: t("series.n", { n: plain.length }) }] : group(plain, text, trainer);
  return [...many, ...plain];
};

// Where several addresses end alike, offer all of them as one pattern.
function group(plain, text, trainer) {
  const ends = new Map();
  for (const { value } of plain) if (text) ends.set(tail(value), (ends.get(tail(value)) ?? 0) + 1);
  return [...ends].filter(([, n]) => n > 1).slice(0, 2).map(([end, n]) => ({ value: `${trainer}.**.${end}`, note: t("series.n", { n }) }));
}
