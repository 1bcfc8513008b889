// The one time axis of the page: iterations, epochs or the clock, from the beginning to now or as far as it is zoomed.
import { between } from "../series.js";
import { count, figure, spoken, tick } from "../numbers.js";
import { linearTicks } from "./scale.js";
import { t } from "../words.js";

const LEAST = 10; // iterations that an empty axis shows

export const column = (mode) => (mode === "clock" ? "second" : "iteration");

// `reference`: the line that knows the most moments; `perEpoch`: iterations in an epoch, if it never changed.
// `far`: the last iteration of an abandoned branch, so that a rewind moves nothing.
export function makeAxis({ mode, now, far, second, range, reference, perEpoch }) {
  const end = mode === "clock" ? Math.max(second || 0, 1) : Math.max(now || 0, far || 0, LEAST);
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
  return { mode, low, high, end, present, clock, column: column(mode), place, iterationAt, epochAt, ticks: ticks(mode, low, high, perEpoch, epochAt, reference) };
}

function ticks(mode, low, high, perEpoch, epochAt, reference) {
  if (mode === "clock") return (most) => clockTicks(low, high, most);
  if (mode === "epoch") return (most) => epochTicks(low, high, most, perEpoch, epochAt, reference);
  return (most) => linearTicks(low, high, most).filter(Number.isInteger).map((value) => [value, count(value)]);
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
  const where = (epoch) => (perEpoch ? epoch * perEpoch : epoch === 0 ? 0 : firstOf(reference, epoch));
  return wanted.map((epoch) => [where(epoch), tick(epoch)]).filter(([at]) => at !== null);
}

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
