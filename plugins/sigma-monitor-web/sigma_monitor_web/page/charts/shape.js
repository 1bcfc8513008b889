// The content of one chart: its series with their lines, the scale, the ticks, the labels, the number and its trend. Nothing here draws.
import { at, upper } from "../series.js";
import { count, exact, figure, percent, tick } from "../numbers.js";
import { t } from "../words.js";
import { roomFor, sized, TARGET } from "./labels.js";
import { asPercent, betterHigh, laneTitle, leading, shortNames } from "./lanes.js";
import { apart } from "./paint.js";
import { SERIES } from "./palette.js";
import { linesOf, referencesOf, widened } from "./references.js";
import { linearTicks, logTicks, roomy, vertical } from "./scale.js";
import { extremes, shownOf } from "./shown.js";

const COLOURED = 6; // series in colour; the others are grey until they are pointed at
const USUAL = 194, SMALL = 176; // pixels
const BELOW = 48; // pixels beside a label that is below its chart

const statics = new WeakMap(); // by the entries of a chart: what depends on nothing else

function staticsOf(entries) {
  const addresses = entries.map((entry) => entry.address);
  if (!statics.has(entries)) statics.set(entries, { names: shortNames(addresses), share: entries.length > 0 && entries.every(asPercent), key: addresses.join(" ") });
  return statics.get(entries);
}

// Which of the numbers of its name a series shows, in words; evaluations and settings have one alone.
const whatOf = (entry, kind, smoothing) => (kind === "dense" && smoothing ? t("number.smoothed") : /^[^.]+\.training\./.test(entry.address) && kind !== "steps" ? t("number.step") : "");

const positive = (items) => items.some(({ line }) => line && line.value.some((value) => value > 0)) || items.every(({ line }) => !line?.length);

// `sizes`: the width of the plot, whether labels are below it (`small`), and whether the scale ends at the values (`tight`).
export function layout(lane, entries, scene, sizes) {
  const { axis } = scene, { names, share } = staticsOf(entries), height = lane.tall ?? USUAL, tall = sizes.small ? Math.min(height, SMALL) : height;
  const colour = colours(entries, rank(lane, entries)), hidden = new Set(lane.hidden);
  const items = entries.map((entry, i) => {
    const own = shownOf(entry.address) ?? { line: null, left: [], values: null, kind: entry.settable ? "steps" : "sparse" };
    return { entry, own, name: names[i], what: whatOf(entry, own.kind, own.factor), line: own.line, left: own.left, kind: own.kind, values: own.values, hidden: hidden.has(entry.address), colour: colour.get(entry.address) };
  });
  for (const item of items) Object.assign(item, { best: best(item), now: newest(item, scene, share) });
  const log = Boolean(lane.log) && positive(items);
  const references = referencesOf(items, scene.state.results), [low, high] = boundsOf(lane, items, axis, log, references, sizes.tight);
  const sy = vertical({ low, high, height: tall, top: 18, bottom: 16, log });
  const ticks = ticksOf(items, low, high, log, tall).map((value) => [value, share ? tick(Number((value * 100).toPrecision(10))) : tick(value)]);
  const tell = (value) => `${reading(value, share)}${share ? " %" : ""}`, lead = items[leading(entries)];
  const baselines = references.filter((one) => one.item === lead).map(({ name, value }) => ({ name, text: tell(value) }));
  return {
    lane, items, log, sy, low, high, ticks, tall, small: sizes.small, share, baselines, references: linesOf(references, [low, high], sy, tell), title: laneTitle(lane, entries),
    labels: labels(items, sy, tall, sizes), others: items.filter((item) => item.colour === "ghost").length, ...big(items, share),
  };
}

// The lowest and highest value of the scale: as a person chose, else those that can be seen, with some air.
function boundsOf(lane, items, axis, log, references, tight) {
  const [chosen, until] = lane.bounds ?? [];
  if (until > chosen && (!log || chosen > 0)) return lane.bounds;
  let low = Infinity, high = -Infinity;
  for (const { own, hidden } of items) {
    if (hidden) continue;
    const [least, most] = extremes(own, axis, log);
    if (least < low) low = least;
    if (most > high) high = most;
  }
  if (tight && high > low) return [low, high];
  [low, high] = widened([low, high], references, log);
  if (items.every((item) => item.kind === "steps") && high >= low) return log ? [low / 1.7, high * 1.7] : roomy(low, high, false);
  return roomy(low, high, log);
}

function ticksOf(items, low, high, log, tall) {
  const most = Math.max(2, Math.round(tall / 46));
  if (items.length && items.every((item) => item.kind === "steps")) {
    const seen = items.flatMap(({ values, left }) => [...(values ?? []), ...left.flatMap((one) => [...one.value])]);
    const values = [...new Set(seen)].filter((value) => value >= low && value <= high).sort((a, b) => a - b);
    if (values.length) return values.length === 1 ? values : [values[0], values.at(-1)];
  }
  return log ? logTicks(low, high, most + 2).filter((value) => value >= low && value <= high) : linearTicks(low, high, most).filter((value) => value >= low && value <= high);
}

const ranks = new Map(); // by lane, as long as its series are the same: colours do not jump

// With more than six series, the highest at the moment when they came are in colour.
function rank(lane, entries) {
  if (entries.length <= COLOURED) return null;
  const known = ranks.get(lane.id), { key } = staticsOf(entries);
  if (known?.key === key) return known.highest;
  const last = new Map(entries.map(({ address }) => [address, shownOf(address)?.line?.value.at(-1) ?? -Infinity]));
  const highest = new Set([...entries].sort((a, b) => last.get(b.address) - last.get(a.address)).slice(0, COLOURED).map((entry) => entry.address));
  if (entries.every(({ address }) => shownOf(address)?.line?.length > 1)) ranks.set(lane.id, { key, highest });
  return highest;
}

// Training always has the first colour, validation the second, a setting the third; others get free ones.
function colours(entries, ranked) {
  const found = new Map();
  const fixed = (entry) => (/\.training\.[^.]+$/.test(entry.address) ? SERIES[0] : /\.validation\.[^.]+$/.test(entry.address) ? SERIES[1]
    : entry.settable && entries.length === 1 ? SERIES[2] : null);
  const taken = new Set(entries.filter((entry) => !ranked || ranked.has(entry.address)).map(fixed));
  const free = SERIES.filter((name) => !taken.has(name)), used = new Set();
  for (const entry of entries) {
    const own = fixed(entry);
    const colour = ranked && !ranked.has(entry.address) ? "ghost" : own && !used.has(own) ? own : (free.shift() ?? "ghost");
    found.set(entry.address, colour);
    used.add(colour);
  }
  return found;
}

export const reading = (value, share, kind) => (share ? percent(value) : kind === "steps" ? exact(value) : figure(value));

// The newest value of a series in the stretch shown: as a number and as text.
function newest(item, { axis, state }, share) {
  const { line, hidden } = item; // unless zoomed, the newest point may be beyond the end of the axis
  const seen = line?.length && !hidden ? (state.range ? upper(line.x, line.length, axis.high) : line.length) - 1 : -1;
  const value = seen < 0 ? NaN : item.values[seen];
  return { value, text: Number.isFinite(value) ? reading(value, share, item.kind) : "" };
}

// The text of a label: its name and value, or since when a setting holds.
function labelText({ name, since, text }) {
  if (since === null) return { name, value: text };
  return { name: since ? t("since", { at: count(since) }) : t("since.start"), value: "" };
}

function labels(items, sy, tall, { width, small }) {
  const made = items.filter((item) => item.colour !== "ghost").map((item) => {
    const { value, text } = item.now;
    const since = item.kind === "steps" && items.length === 1 && item.line?.length ? item.line.iteration[item.line.length - 1] : null;
    const label = { address: item.entry.address, colour: item.colour, hidden: item.hidden, y: Number.isFinite(value) ? sy(value) : tall / 2 };
    return sized(label, labelText({ name: item.name, since, text }), item.best?.newest && !small ? t("best") : "", small ? width - BELOW : roomFor(width));
  });
  return small ? made : apart(made, TARGET, 14, tall - 10);
}

// The best value so far of a rising series: its place, and whether it is the newest.
function best(item) {
  if (!item.line?.length || item.kind !== "sparse" || !betterHigh(item.entry.address)) return null;
  const { high, value, length } = item.line; // of points that stand for several
  let at = 0;
  for (let i = 1; i < length; i++) if (high[i] >= high[at]) at = i;
  return { at, value: high[at], newest: length > 1 && value[length - 1] >= high[at] };
}

// The headline number of a lane, its series, and its change in the last epoch.
function big(items, share) {
  const item = items[leading(items.map(({ entry }) => entry))];
  if (!item?.line?.length) return { number: "–", whose: "", trend: null };
  const { line } = item, last = line.length - 1, now = item.values[last], epoch = line.epoch[last];
  const before = upper(line.epoch, line.length, epoch - 1) - 1;
  const change = before >= 0 && item.kind !== "steps" ? now - item.values[before] : null;
  const size = change === null ? "" : share ? percent(Math.abs(change)) : figure(Math.abs(change), 3);
  const whose = items.length > 1 || item.kind !== "steps" ? [item.name, item.what].filter(Boolean).join(", ") : "";
  return { number: reading(now, share, item.kind), whose, trend: change === null ? null : { up: change > 0, flat: change === 0, size, epochs: epoch - line.epoch[before] } };
}

// What a chart reads at a place on the axis: each series that is shown, with the value of its line and the measured one.
export function readings(shape, place) {
  return shape.items.filter((item) => item.line && !item.hidden).flatMap((item) => {
    const drawn = at(item.line, item.values, place);
    return drawn ? [{ item, value: drawn.value, measured: item.line.value[drawn.index] }] : [];
  });
}
