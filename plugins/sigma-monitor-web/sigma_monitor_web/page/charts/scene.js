// What the charts share at one moment: branches, axis, marks, the lines of each address; and how wide their plots are. Nothing here draws.
import { chain, curves, lines, Stretch, whole } from "../series.js";
import { ofTrainer } from "../store.js";
import { kept } from "../playback.js";
import { column, makeAxis, modeOf } from "./axis.js";
import { flags, told } from "./marks.js";
import { measure } from "./paint.js";
import { series } from "./lanes.js";
import { horizontal } from "./scale.js";
import { makeWall } from "./wall.js";

const BESIDE = 12; // pixels between a plot and its ticks and labels
const LEAST = { left: 32, gutter: 96 }; // pixels at the left of a plot, for ticks, and at its right, for labels
const SLACK = 48; // pixels that those may have too many, so that plots seldom change their width
const NARROW = 16; // pixels at the right of a plot whose labels are below it

const cache = new Map();

// The lines of an address, computed again only when its points, the branches or the axis have changed.
function linesOf(address, alive, axisColumn, journal, wall) {
  const measured = curves.get(address), curve = measured?.branches.size ? measured : journal(address);
  if (!curve) return null;
  const key = `${curve.version}|${axisColumn}|${wall?.key}|${alive.map((one) => `${one.number}:${one.to}`)}`;
  const known = cache.get(address);
  if (known?.key === key) return known;
  const made = { key, wall, ...lines(curve, alive, axisColumn, wall?.places) };
  cache.set(address, made);
  return made;
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
    let end = 0, second = 0;
    for (const address of addresses) {
      const stretch = curves.get(address)?.branches.get(branch.number);
      if (stretch?.length) [end, second] = [Math.max(end, stretch.iteration[stretch.length - 1]), Math.max(second, stretch.second[stretch.length - 1])];
    }
    return { number: branch.number, from, end, second };
  }).filter((one) => Number.isFinite(one.from) && one.end > one.from);
}

// The clock on the wall as far as the axis needs it, made again only when the periods have changed.
let walls = { of: null, wall: null };
function wallOf(state) {
  if (modeOf(state) !== "time") return null;
  if (walls.of !== state.periods) walls = { of: state.periods, wall: makeWall(state.periods) };
  return walls.wall;
}

// Where now is on the wall: training, or in a pause that has not ended, for which the clock of the page has to do.
function passed(wall, about, branch, paused) {
  const trained = wall.at(branch, about?.second ?? 0), now = Date.now() / 1000 - wall.origin;
  const open = paused && now > trained ? [[trained, now]] : [];
  return { passed: open.length ? now : trained, wall: { ...wall, pauses: [...wall.pauses, ...open] } };
}

export function makeScene(state, lanes) {
  const about = ofTrainer(state), mode = modeOf(state), wall = wallOf(state);
  const alive = chain(state.branches, about?.branch ?? 0);
  const rows = told(state.journal, state.trainer, state.branches);
  const journal = fromJournal(rows, state.entries);
  const all = lanes.map((lane) => series(lane, state.entries, state.trainer));
  const addresses = [...new Set(all.flat().map((entry) => entry.address))];
  const found = new Map(addresses.map((address) => [address, linesOf(address, alive, column(mode), journal, wall)]));
  const reference = longest([...found.values()]);
  const changed = rows.some(({ row }) => /batch_size$/.test(row.pattern ?? ""));
  const perEpoch = changed || !about?.goal || !Number.isFinite(about?.epochs) ? null : about.goal / about.epochs;
  const abandoned = ends(state.branches, alive, addresses), far = Math.max(0, ...abandoned.map((one) => one.end));
  const axis = makeAxis({ mode, log: state.logAxis, now: about?.iteration, far, second: about?.second, range: state.range, reference, perEpoch, ...(wall ? passed(wall, about, about?.branch ?? 0, state.status?.status === "paused") : {}) });
  return { state, about, alive, rows, all, found, axis, reference, flags: flags(rows, alive), kept: kept(state), abandoned, now: about?.iteration ?? 0 };
}

const atLeast = (needed, step, held) => (needed <= held && held - needed < SLACK ? held : Math.ceil(needed / step) * step);

// The scene in plots of a width: room for the widest tick and the widest label, or only for ticks where labels are below (`small`).
// `texts`: what else is written at the right; `held`: the room of the last time.
export function placed(scene, shapes, { width, small, texts = [], held = LEAST }) {
  const ticks = shapes.flatMap((shape) => shape.ticks.map(([, text]) => measure(text)));
  const labels = shapes.flatMap((shape) => shape.labels.map((one) => one.width));
  const left = atLeast(Math.max(LEAST.left, ...ticks.map((one) => one + BESIDE)), 4, held.left);
  const gutter = small ? NARROW : atLeast(Math.max(LEAST.gutter, ...labels, ...texts.map((text) => measure(text) + BESIDE + 8)), 8, held.gutter);
  const frame = { left, right: Math.max(left + 40, width - gutter), width, gutter };
  const { low, high, log, least } = scene.axis;
  return { ...scene, frame, small, sx: horizontal({ low, high, log, least, left: frame.left, right: frame.right }) };
}
