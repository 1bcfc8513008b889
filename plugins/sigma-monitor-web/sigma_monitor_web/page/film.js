// The history of a run as a film: the kept states one after another, at a pace; all views follow the state that is picked.
import { announce } from "./announce.js";
import { kept } from "./playback.js";
import { memory, ofTrainer, store, useStore } from "./store.js";
import { count } from "./numbers.js";
import { t } from "./words.js";

export const PAST_VIEWS = ["network", "data", "try"]; // views that show the picked state, and have no time line
export const PACES = [0.5, 1, 2, 5, 10]; // states a second
const USUAL = 2, CALM = 1; // the pace at first, and the most where the system asks for less motion
const TICK = 40; // milliseconds between two looks at the clock

export const frames = { waiting: 0 }; // requests about the picked state that are not answered yet: as long as there are any, none follows

let shown = null; // the iteration that the film shows
let since = 0; // when it was due, by performance.now()

const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

export const paceOf = (state) => state.pace ?? memory.get("pace", USUAL);

export function setPace(pace) {
  memory.set("pace", pace);
  store.set({ pace });
}

// The states before now, oldest first.
export function past(state) {
  const now = ofTrainer(state)?.iteration ?? 0;
  return kept(state).filter((one) => one.iteration < now);
}

// The state that is due after some seconds at a pace, with those between left out; null is now, the end of the film.
export function due(states, iteration, steps) {
  const at = states.findLastIndex((one) => one.iteration <= iteration);
  return states[at + steps] ?? null;
}

export function stop() {
  if (!store.get().playing) return;
  store.set({ playing: false });
  announce(t("film.stopped"));
}

// From the picked state on, or from the first one.
export function play() {
  const state = store.get(), states = past(state), first = states.findLast((one) => one.iteration <= state.picked?.iteration) ?? states[0];
  if (!first) return;
  [shown, since] = [first.iteration, performance.now()];
  store.set({ playing: true, picked: first, wished: null });
  announce(t("film.plays", { at: count(shown) }));
  setTimeout(turn, TICK);
}

export const toggle = () => (store.get().playing ? stop() : play());

// Show what is due, once the last is answered everywhere: a slow server makes states be left out, and nothing wait in a queue. A person who
// has picked another state, or none, has stopped the film; so has one who looks elsewhere.
function turn() {
  const state = store.get();
  if (!state.playing) return undefined;
  if (document.hidden || state.connection !== "online" || state.picked?.iteration !== shown) return stop();
  setTimeout(turn, TICK);
  const apart = 1000 / Math.min(paceOf(state), still() ? CALM : Infinity), steps = Math.floor((performance.now() - since) / apart);
  if (!steps || frames.waiting) return undefined;
  since += steps * apart;
  const next = due(past(state), shown, steps);
  shown = next?.iteration ?? null;
  store.set(next ? { picked: next } : { picked: null, playing: false });
  if (!next) announce(t("film.over"));
  return undefined;
}

// What requests about the network say of the moment: `at` the picked state, or nothing of now.
export function useMoment() {
  const at = useStore((state) => state.picked?.iteration);
  return at === undefined ? {} : { at };
}
