// The charts' common state at one moment: branches, axis, marks; and the content of a lane. Nothing here draws.
import { chain, curves, lines, smoothed, Stretch, upper, whole } from "../series.js";
import { ofTrainer } from "../store.js";
import { exact, figure, percent, tick } from "../numbers.js";
import { t } from "../words.js";
import { kept } from "../playback.js";
import { column, makeAxis } from "./axis.js";
import { flags, told } from "./marks.js";
import { apart, visible } from "./paint.js";
import { asPercent, betterHigh, laneTitle, leading, series, shortNames } from "./lanes.js";
import { SERIES } from "./palette.js";
import { linesOf as referenceLines, referencesOf, widened } from "./references.js";
import { horizontal, linearTicks, logTicks, roomy, vertical } from "./scale.js";

const TARGET = 24; // pixels between targets, as WCAG 2.2 requires
const LEFT = 44; // of a plot, for the ticks
const GUTTER = 132; // at its right, for the labels
const DENSE = 100; // points from which on a curve is smoothed
const COLOURED = 6; // series in colour; the others are grey until they are pointed at

const cache = new Map();

// The lines of an address, computed again only when its points, the branches or the axis have changed.
function linesOf(address, alive, axisColumn, journal) {
  const measured = curves.get(address), curve = measured?.branches.size ? measured : journal(address);
  if (!curve) return null;
  const key = `${curve.version}|${axisColumn}|${alive.map((one) => `${one.number}:${one.to}`)}`;
  const known = cache.get(address);
  if (known?.key === key) return known;
  const made = { key, ...lines(curve, alive, axisColumn) };
  cache.set(address, made);
  return made;
}

// The smoothed values of a curve: of the line that counts, and of each that was left.
function smoothOf(found, factor) {
  if (found.factor !== factor) {
    found.factor = factor;
    found.smooth = smoothed(found.alive.value, factor, found.alive.x);
    for (const one of found.left) one.smooth = one.length >= DENSE / 4 ? smoothed(one.value, factor * 0.9, one.x) : one.value;
  }
  return found.smooth;
}

// A setting that the server knows no history of, from the journal: a step at each change.
function fromJournal(rows, entries) {
  return (address) => {
    const mine = rows.filter(({ row }) => row.command === "set" && whole(row) === address && Number.isFinite(Number(row.value)));
    const entry = entries.find((one) => one.address === address);
    if (!entry || (!mine.length && !Number.isFinite(entry.value))) return null;
    const branches = new Map();
    const add = (branch, iteration, epoch, second, value) => {
      if (!branches.has(branch)) branches.set(branch, new Stretch());
      branches.get(branch).add({ iteration: [iteration], epoch: [epoch], second: [second], value: [value] });
    };
    const first = mine.length ? mine[0].before : entry.value;
    if (Number.isFinite(first)) add(0, 0, 0, 0, first);
    for (const { row, branch } of mine) add(branch, row.iteration, row.epoch, row.seconds, Number(row.value));
    return { version: `j${mine.length}:${entry.value}`, branches };
  };
}

function longest(found) {
  return found.reduce((best, one) => ((one?.alive?.length ?? 0) > (best?.length ?? 0) ? one.alive : best), null);
}

// Where each branch that was left ends, by the newest point of any curve.
function ends(branches, alive, addresses) {
  return branches.map((branch) => {
    const link = alive.find((one) => one.number === branch.number);
    const from = link ? link.to : (branch.start ?? 0);
    let end = 0;
    for (const address of addresses) {
      const stretch = curves.get(address)?.branches.get(branch.number);
      if (stretch?.length) end = Math.max(end, stretch.iteration[stretch.length - 1]);
    }
    return { number: branch.number, from, end };
  }).filter((one) => Number.isFinite(one.from) && one.end > one.from);
}

export function makeScene(state, lanes, width, small) {
  const about = ofTrainer(state), mode = state.axis;
  const alive = chain(state.branches, about?.branch ?? 0);
  const rows = told(state.journal, state.trainer, state.branches);
  const journal = fromJournal(rows, state.entries);
  const all = lanes.map((lane) => series(lane, state.entries, state.trainer));
  const addresses = [...new Set(all.flat().map((entry) => entry.address))];
  const found = new Map(addresses.map((address) => [address, linesOf(address, alive, column(mode), journal)]));
  const reference = longest([...found.values()]);
  const changed = rows.some(({ row }) => /batch_size$/.test(row.pattern ?? ""));
  const perEpoch = changed || !about?.goal || !Number.isFinite(about?.epochs) ? null : about.goal / about.epochs;
  const abandoned = ends(state.branches, alive, addresses), far = Math.max(0, ...abandoned.map((one) => one.end));
  const axis = makeAxis({ mode, now: about?.iteration, far, second: about?.second, range: state.range, reference, perEpoch });
  const frame = { left: LEFT, right: Math.max(LEFT + 40, width - (small ? 16 : GUTTER)), width };
  return {
    state, about, alive, rows, all, found, addresses, axis, frame, small, reference, sx: horizontal({ low: axis.low, high: axis.high, ...frame }),
    flags: flags(rows, alive), kept: kept(state), abandoned, now: about?.iteration ?? 0,
  };
}

// Settings are steps; values of every iteration are smoothed; evaluations are raw.
function kindOf(entry, line) {
  if (entry.settable) return "steps";
  return (line?.length ?? 0) >= DENSE && !/\.(validation|test)\./.test(entry.address) ? "dense" : "sparse";
}

// Which of the numbers of its name a series shows, in words; evaluations and settings have one alone.
const whatOf = (entry, kind, smoothing) => (kind === "dense" && smoothing ? t("number.smoothed") : /^[^.]+\.training\./.test(entry.address) && kind !== "steps" ? t("number.step") : "");

// The lowest and highest value that can be seen.
function bounds(items, axis, log) {
  let low = Infinity, high = -Infinity;
  const look = (values, line) => {
    const [from, to] = visible(line, axis.low, axis.high);
    for (let i = from; i < to; i++) {
      const value = values[i];
      if (Number.isFinite(value) && (!log || value > 0)) {
        if (value < low) low = value;
        if (value > high) high = value;
      }
    }
  };
  for (const { line, left, hidden } of items) {
    if (hidden) continue;
    if (line) for (const values of [line.value, line.low, line.high]) look(values, line);
    for (const one of left) look(one.value, one);
  }
  return [low, high];
}

const positive = (items) => items.some(({ line }) => line && line.value.some((value) => value > 0)) || items.every(({ line }) => !line?.length);

// What a lane shows: its series with their lines, the scale, the ticks, the labels, the number and its trend.
export function layout(lane, entries, scene, smoothing) {
  const { axis, small } = scene;
  const height = lane.tall ?? 194, tall = small ? Math.min(height, 176) : height;
  const names = shortNames(entries.map((entry) => entry.address));
  const colour = colours(entries, rank(lane, entries, scene));
  const items = entries.map((entry, i) => {
    const found = scene.found.get(entry.address), line = found?.alive ?? null, kind = kindOf(entry, line);
    const shown = line ? (kind === "dense" ? smoothOf(found, smoothing) : line.value) : null;
    return { entry, name: names[i], what: whatOf(entry, kind, smoothing), line, left: found?.left ?? [], kind, values: shown, hidden: (lane.hidden ?? []).includes(entry.address), colour: colour.get(entry.address) };
  });
  const share = entries.length > 0 && entries.every(asPercent);
  for (const item of items) Object.assign(item, { best: best(item), now: newest(item, scene, share) });
  const log = Boolean(lane.log) && positive(items);
  const references = referencesOf(items, scene.state.results), [low, high] = roomyOf(items, axis, log, references);
  const sy = vertical({ low, high, height: tall, top: 18, bottom: 16, log });
  const ticks = ticksOf(items, low, high, log, tall).map((value) => [value, share ? tick(Number((value * 100).toPrecision(10))) : tick(value)]);
  const tell = (value) => `${reading(value, share)}${share ? " %" : ""}`, lead = items[leading(entries)];
  const baselines = references.filter((one) => one.item === lead).map(({ name, value }) => ({ name, text: tell(value) }));
  return { lane, items, log, sy, ticks, tall, share, baselines, references: referenceLines(references, [low, high], sy, tell), title: laneTitle(lane, entries), labels: labels(items, sy, tall), ...big(items, scene, share) };
}

function roomyOf(items, axis, log, references) {
  const [low, high] = widened(bounds(items, axis, log), references, log);
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
  return log ? logTicks(low, high, most + 2) : linearTicks(low, high, most).filter((value) => value >= low && value <= high);
}

const ranks = new Map(); // by lane, as long as its series are the same: colours do not jump

// With more than six series, the highest at the moment when they came are in colour.
function rank(lane, entries, scene) {
  if (entries.length <= COLOURED) return null;
  const key = entries.map((entry) => entry.address).join(" "), known = ranks.get(lane.id);
  if (known?.key === key) return known.highest;
  const highest = highestOf(entries, scene);
  if (entries.some((entry) => scene.found.get(entry.address)?.alive)) ranks.set(lane.id, { key, highest });
  return highest;
}

function highestOf(entries, scene) {
  const last = (entry) => scene.found.get(entry.address)?.alive?.value.at(-1) ?? -Infinity;
  return new Set([...entries].sort((a, b) => last(b) - last(a)).slice(0, COLOURED).map((entry) => entry.address));
}

// Training always has the first colour, validation the second, a setting the third; others get free ones.
function colours(entries, ranked) {
  const found = new Map();
  const fixed = (entry) => (/\.training\.[^.]+$/.test(entry.address) ? SERIES[0] : /\.validation\.[^.]+$/.test(entry.address) ? SERIES[1]
    : entry.settable && entries.length === 1 ? SERIES[2] : null);
  const taken = new Set(entries.filter((entry) => !ranked || ranked.has(entry.address)).map(fixed));
  const free = SERIES.filter((name) => !taken.has(name));
  for (const entry of entries) {
    const own = fixed(entry);
    const used = own && [...found.values()].includes(own);
    if (ranked && !ranked.has(entry.address)) found.set(entry.address, "ghost");
    else found.set(entry.address, own && !used ? own : (free.shift() ?? "ghost"));
  }
  return found;
}

export const reading = (value, share, kind) => (share ? percent(value) : kind === "steps" ? exact(value) : figure(value));

// The newest value of a series in the stretch shown: as a number and as text.
function newest(item, scene, share) {
  const { line, hidden } = item, { axis, state } = scene; // unless zoomed, the newest point may be beyond the end of the axis
  const seen = line?.length && !hidden ? (state.range ? upper(line.x, line.length, axis.high) : line.length) - 1 : -1;
  const value = seen < 0 ? NaN : item.values[seen];
  return { value, text: Number.isFinite(value) ? reading(value, share, item.kind) : "" };
}

function labels(items, sy, tall) {
  const made = items.filter((item) => item.colour !== "ghost").map((item) => {
    const { value, text } = item.now;
    const since = item.kind === "steps" && items.length === 1 && item.line?.length ? item.line.iteration[item.line.length - 1] : null;
    return { address: item.entry.address, name: item.name, colour: item.colour, hidden: item.hidden, since, text, y: Number.isFinite(value) ? sy(value) : tall / 2, best: item.best };
  });
  return apart(made, TARGET, 14, tall - 10);
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
function big(items, scene, share) {
  const item = items[leading(items.map(({ entry }) => entry))];
  if (!item?.line?.length) return { number: "–", whose: "", trend: null };
  const { line } = item, last = line.length - 1, now = item.values[last];
  const epoch = line.epoch[last];
  let before = -1;
  for (let i = last - 1; i >= 0 && before < 0; i--) if (line.epoch[i] <= epoch - 1) before = i;
  const change = before >= 0 && item.kind !== "steps" ? now - item.values[before] : null;
  const size = change === null ? "" : share ? percent(Math.abs(change)) : figure(Math.abs(change), 3);
  return { number: reading(now, share, item.kind), whose: items.length > 1 || item.kind !== "steps" ? [item.name, item.what].filter(Boolean).join(", ") : "", trend: change === null ? null : { up: change > 0, flat: change === 0, size, epochs: epoch - line.epoch[before] }, steps: item.kind === "steps" };
}
