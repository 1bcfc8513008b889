// The one time axis of the page: iterations, epochs, the time that training took or that of the day, from the beginning to now or as far as it is zoomed.
import { between } from "../series.js";
import { clockTime, count, figure, sameDay, spoken, tick } from "../numbers.js";
import { linearTicks, logTicks } from "./scale.js";
import { t } from "../words.js";
import { makeWall } from "./wall.js";

const SHOWN = 10; // iterations that an empty axis shows
const LEAST = 1; // iteration or second at which a logarithmic axis begins
const EARLY = 50; // of the first of so many parts of a run a logarithmic axis needs more points

export const MODES = ["iteration", "epoch", "clock", "time"];
export const column = (mode) => (mode === "clock" ? "second" : "iteration");

// The axis that a run has: one that knows no times of day has the time that training took in their place.
export const modeOf = ({ axis, periods }) => (axis === "time" && !periods?.length ? "clock" : axis);

// The part of the run of which more points are needed: the one that is zoomed to, or the beginning on a logarithmic axis.
export function detail(state) {
  const { range, logAxis, status, trainer } = state, mode = modeOf(state);
  if (mode === "time") return range && makeWall(state.periods).seconds(range);
  const about = status?.trainers?.[trainer], end = mode === "clock" ? about?.second : about?.iteration;
  return range ?? (logAxis && end > EARLY ? [0, 2 ** Math.floor(Math.log2(end / EARLY))] : null);
}

// `reference`: the line that knows the most moments; `perEpoch`: iterations in an epoch, if it never changed.
// `far`: the last iteration of an abandoned branch, so that a rewind moves nothing; `wall`: the clock on the wall, `passed`: the place of now there.
export function makeAxis({ mode, log, now, far, second, range, reference, perEpoch, wall = null, passed = 0 }) {
  if (wall) return timeAxis({ range, reference, perEpoch, wall, passed });
  const end = mode === "clock" ? Math.max(second || 0, 1) : Math.max(now || 0, far || 0, SHOWN);
  const present = mode === "clock" ? second || 0 : now || 0;
  const [low, high] = range ?? [0, end];
  const clock = mode === "clock";
  const place = (iteration, seconds) => {
    if (!clock) return iteration;
    if (Number.isFinite(seconds)) return seconds;
    return reference ? between(reference.iteration, reference.second, reference.length, iteration) : 0;
  };
  const iterationAt = (x) => (clock ? (reference ? between(reference.second, reference.iteration, reference.length, x) : 0) : x);
  const epochAt = epochsOf(reference, perEpoch);
  const found = { mode, log, low, high, end, present, clock, column: column(mode), least: LEAST, place, iterationAt, epochAt };
  return { ...found, ticks: (log ? logarithmic : ticks)(found, perEpoch, reference) };
}

const epochsOf = (reference, perEpoch) => (iteration) => {
  if (perEpoch) return iteration / perEpoch;
  return reference ? between(reference.iteration, reference.epoch, reference.length, iteration) : 0;
};

// The axis of times of day: its places are seconds since the run began. A mark is placed by its time, by its branch and second, or by its iteration.
function timeAxis({ range, reference, perEpoch, wall, passed }) {
  const end = Math.max(passed, LEAST), [low, high] = range ?? [0, end];
  const place = (iteration, seconds, { branch, time } = {}) => {
    if (Number.isFinite(time)) return time - wall.origin;
    if (Number.isFinite(seconds) && Number.isFinite(branch)) return wall.at(branch, seconds);
    return reference ? between(reference.iteration, reference.x, reference.length, iteration) : 0;
  };
  const iterationAt = (x) => (reference ? between(reference.x, reference.iteration, reference.length, x) : 0);
  return { mode: "time", log: false, low, high, end, present: end, clock: true, column: "second", least: LEAST, wall, place, iterationAt, epochAt: epochsOf(reference, perEpoch), ticks: (most) => timeTicks(wall.origin, low, high, most) };
}

// Times of day as ticks, at whole minutes and hours of the clock of the page; where a day begins, its date.
function timeTicks(origin, low, high, most) {
  const found = [], days = Math.ceil((high - low) / 86400 / most), step = STEPS.find((one) => (high - low) / one <= most) ?? days * 86400;
  const first = new Date((origin + low) * 1000), date = new Date(first.getFullYear(), first.getMonth(), first.getDate());
  let at = date.getTime() / 1000;
  while (step < 86400 && at < origin + low) at += Math.max(step, Math.floor((origin + low - at) / step) * step);
  while (at <= origin + high) {
    if (at >= origin + low) found.push([at - origin, clockTime(at, step)]);
    if (step < 86400) at += step;
    else at = date.setDate(date.getDate() + step / 86400) / 1000; // days may have 23 or 25 hours
  }
  return found;
}

function ticks({ mode, low, high, epochAt }, perEpoch, reference) {
  if (mode === "clock") return (most) => clockTicks(low, high, most);
  if (mode === "epoch") return (most) => epochTicks(low, high, most, perEpoch, epochAt, reference);
  return (most) => linearTicks(low, high, most).filter(Number.isInteger).map((value) => [value, count(value)]);
}

const MOMENTS = [1, 10, 60, 600, 3600, 21600, 86400, 864000, 8640000]; // seconds: 1 s, 10 s, 1 min, 10 min, 1 h, 6 h, 1 d, ...

function logarithmic({ mode, low, high, least, epochAt }, perEpoch, reference) {
  const from = Math.max(low, least), to = Math.max(high, from * 1.001);
  if (mode === "clock") return () => MOMENTS.filter((one) => one >= from && one <= to).map((one) => [one, spoken(one)]);
  if (mode === "iteration") return (most) => logTicks(from, to, Math.max(3, most * 0.6)).filter(Number.isInteger).map((value) => [value, count(value)]);
  return (most) => logTicks(Math.max(epochAt(from), 1e-3), Math.max(epochAt(to), 2e-3), Math.max(3, most * 0.6)).map((epoch) => [placeOf(epoch, perEpoch, reference), tick(epoch)]).filter(([at]) => at !== null);
}

const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 86400];

function clockTicks(low, high, most) {
  const step = STEPS.find((one) => (high - low) / one <= most) ?? Math.ceil((high - low) / most / 86400) * 86400;
  const found = [];
  for (let value = Math.ceil(low / step) * step; value <= high; value += step) found.push([value, value ? spoken(value) : "0"]);
  return found;
}

function epochTicks(low, high, most, perEpoch, epochAt, reference) {
  const wanted = linearTicks(epochAt(low), epochAt(high), most).filter(Number.isInteger);
  return wanted.map((epoch) => [placeOf(epoch, perEpoch, reference), tick(epoch)]).filter(([at]) => at !== null);
}

const placeOf = (epoch, perEpoch, reference) => (perEpoch ? epoch * perEpoch : epoch === 0 ? 0 : firstOf(reference, epoch));

function firstOf(reference, epoch) {
  if (!reference) return null;
  const index = reference.epoch.subarray(0, reference.length).findIndex((one) => one >= epoch);
  return index < 0 ? null : reference.iteration[index];
}

// A moment in words: "iteration 3,000, epoch 5.00".
export function moment(axis, place) {
  const iteration = Math.max(0, Math.round(axis.iterationAt(place)));
  const parts = [t("at.iteration", { n: count(iteration) })];
  const epoch = axis.epochAt(iteration);
  if (epoch > 0) parts.push(t("at.epoch", { n: figure(epoch, 3) }));
  if (axis.wall) parts.push(whenAt(axis, place));
  else if (axis.clock) parts.push(spoken(place));
  return parts.join(", ");
}

// The time of day at a place; in a pause, from when until when it lasted.
function whenAt({ wall, end }, place) {
  const pause = wall.pauses.find(([from, to]) => from < place && place < to), time = (at) => clockTime(wall.origin + at, sameDay(wall.origin, wall.origin + end) ? 1 : 0);
  return pause ? t("paused.from", { from: time(pause[0]), to: time(pause[1]) }) : time(place);
}
