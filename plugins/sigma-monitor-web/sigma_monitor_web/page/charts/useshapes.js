// The content of the lanes, computed a few milliseconds a frame: with many points in many charts, waiting lanes keep their content.
import { useEffect, useReducer, useRef } from "../lib.js";
import { store } from "../store.js";
import { layout } from "./scene.js";

const SHARE = 6; // milliseconds of a frame

const alike = (one, other) => one.length === other.length && one.every((part, i) => part === other[i]);

// What a person has asked for: without it, nothing can be shown.
const asked = (lane, entries, { axis, frame, small }, { smoothing, range, language, results }) =>
  [lane, axis.mode, frame.width, small, smoothing, range, language, results, entries.map((entry) => entry.address).join(" ")];

// What has been measured: it can wait for a frame.
const measured = (entries, { axis, found }) => [axis.low, axis.high, axis.present, ...entries.map((entry) => found.get(entry.address))];

export function useShapes(lanes, scene) {
  const held = useRef(new Map()), turn = useRef(0), [, again] = useReducer((n) => n + 1, 0);
  const begun = performance.now(), state = store.get(), known = held.current, next = new Map();
  let waits = false;
  for (let n = 0; n < lanes.length; n++) {
    const i = (turn.current + n) % lanes.length, lane = lanes[i], entries = scene.all[i], old = known.get(lane.id);
    const made = { asked: asked(lane, entries, scene, state), measured: measured(entries, scene) };
    const fits = old && alike(old.asked, made.asked), holds = fits && alike(old.measured, made.measured);
    const late = fits && !holds && n > 0 && performance.now() - begun > SHARE;
    next.set(lane.id, holds || late ? old : { ...made, shape: layout(lane, entries, scene, state.smoothing) });
    if (late && !waits) [waits, turn.current] = [true, i];
  }
  held.current = next;
  useEffect(() => {
    if (!waits) return undefined;
    const frame = requestAnimationFrame(() => again());
    return () => cancelAnimationFrame(frame);
  });
  return lanes.map((lane) => next.get(lane.id).shape);
}
