// The one time axis of the page: iterations, epochs or the clock, from the beginning to now or as far as it is zoomed.
import { between } from "../series.js";
import { count, figure, spoken, tick } from "../numbers.js";
import { linearTicks, logTicks } from "./scale.js";
import { t } from "../words.js";

const SHOWN = 10; // iterations that an empty axis shows
const LEAST = 1; // iteration or second at which a logarithmic axis begins
const EARLY = 50; // of the first of so many parts of a run a logarithmic axis needs more points

export const column = (mode) => (mode === "clock" ? "second" : "iteration");

// The part of the run of which more points are needed: the one that is zoomed to, or the beginning on a logarithmic axis.
export function detail({ axis, range, logAxis, status, trainer }) {
  const about = status?.trainers?.[trainer], end = axis === "clock" ? about?.second : about?.iteration;
  return range ?? (logAxis && end > EARLY ? [0, 2 ** Math.floor(Math.log2(end / EARLY))] : null);
}

// `reference`: the line that knows the most moments; `perEpoch`: iterations in an epoch, if it never changed.
// `far`: the last iteration of an abandoned branch, so that a rewind moves nothing.
export function makeAxis({ mode, log, now, far, second, range, reference, perEpoch }) {
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
  const epochAt = (iteration) => {
    if (perEpoch) return iteration / perEpoch;
    if (!reference) return 0;
    return between(reference.iteration, reference.epoch, reference.length, iteration);
  };
  const found = { mode, log, low, high, end, present, clock, column: column(mode), least: LEAST, place, iterationAt, epochAt };
  return { ...found, ticks: (log ? logarithmic : ticks)(found, perEpoch, reference) };
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
  if (axis.clock) parts.push(spoken(place));
  return parts.join(", ");
}
