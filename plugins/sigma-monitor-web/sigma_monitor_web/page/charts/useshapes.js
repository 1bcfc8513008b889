// The content of the lanes, computed a few milliseconds a frame: with many points in many charts, waiting lanes keep their content.
import { useEffect, useReducer, useRef } from "../lib.js";
import { store } from "../store.js";
import { layout } from "./shape.js";
import { refresh, shownOf } from "./shown.js";

const SHARE = 6; // milliseconds of a frame
const PATIENCE = 500; // milliseconds that a lane keeps its content while some of its series are computed

const alike = (one, other) => one.length === other.length && one.every((part, i) => part === other[i]);

// What a person has asked for: without it, nothing can be shown.
const asked = (lane, entries, { axis }, { small, width, tight }, { range, language, results }) => [lane, entries, axis.mode, small, width, tight, range, language, results];

// What has been measured: it can wait for a frame.
const measured = (entries, { axis }) => [axis.low, axis.high, axis.present, ...entries.map((entry) => shownOf(entry.address))];

export function useShapes(lanes, scene, sizes) {
  const held = useRef(new Map()), turn = useRef(0), [, again] = useReducer((n) => n + 1, 0);
  const begun = performance.now(), state = store.get(), known = held.current, next = new Map();
  const stale = refresh([...new Set(scene.all.flat())], scene.found, state.smoothing, begun + SHARE);
  const first = turn.current;
  let waits = stale.size > 0, passed = false;
  for (let n = 0; n < lanes.length; n++) {
    const i = (first + n) % lanes.length, lane = lanes[i], entries = scene.all[i], old = known.get(lane.id);
    const made = { asked: asked(lane, entries, scene, sizes, state), measured: measured(entries, scene), when: begun };
    const fits = old && alike(old.asked, made.asked), holds = fits && alike(old.measured, made.measured);
    const partly = fits && begun - old.when < PATIENCE && entries.some((entry) => stale.has(entry.address));
    const late = fits && !holds && n > 0 && performance.now() - begun > SHARE;
    next.set(lane.id, holds || partly || late ? old : { ...made, shape: layout(lane, entries, scene, sizes) });
    if (late && !passed) [passed, turn.current] = [true, i];
  }
  waits ||= passed;
  held.current = next;
  useEffect(() => {
    if (!waits) return undefined;
    const frame = requestAnimationFrame(() => again());
    return () => cancelAnimationFrame(frame);
  });
  return lanes.map((lane) => next.get(lane.id).shape);
}
