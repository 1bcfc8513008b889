// Moments between the kept states: wished for on the time line, computed again by the run's server, and then shown as kept states are.
import { announce } from "./announce.js";
import { actions, allowed, kept } from "./playback.js";
import { request } from "./session.js";
import { ofTrainer, store } from "./store.js";
import { count } from "./numbers.js";
import { t } from "./words.js";

// The newest attempt at the moment that is wished for, if there was one.
export const attempt = ({ recalls, wished }) => recalls.find((one) => one.iteration === wished) ?? null;

export const running = ({ recalls }) => recalls.find((one) => one.state === "running") ?? null;

// Whether moments can be computed again here: by whoever may steer a run that has a folder.
export const possible = (state) => allowed(state).steer && Boolean(state.hello?.folder);

// Choose any iteration before now: a state of it is shown, and without one it can be computed again.
export function choose(iteration) {
  const state = store.get(), now = ofTrainer(state)?.iteration ?? 0;
  if (!Number.isFinite(iteration) || iteration >= now) return store.set({ picked: null, wished: null, refused: "" });
  const at = Math.max(0, Math.round(iteration)), there = kept(state).find((one) => one.iteration === at);
  return store.set(there ? { picked: there, wished: null, refused: "" } : { picked: null, wished: at, refused: "" });
}

export async function recompute() {
  const { trainer, wished } = store.get();
  store.set({ refused: "" });
  try {
    const begun = await request("recall", { at: wished, trainer });
    store.set(({ recalls }) => ({ recalls: [begun, ...recalls.filter((one) => one.iteration !== begun.iteration)] }));
    announce(t("recall.running", { at: count(wished) }));
  } catch (error) {
    store.set({ refused: error.message });
  }
}

export const cancel = () => request("cancel_recall").catch((error) => store.set({ refused: error.message }));

// Go on from the picked state: a rewind, which goes to kept states alone.
export const rewinds = (state) => Boolean(state.picked) && !state.picked.recalled && !state.picked.between && allowed(state).rewind;
export const goOn = (state) => rewinds(state) && actions.rewind(state.picked.iteration);

// A moment that was wished for is shown once it has been computed.
function arrive(state) {
  if (state.wished === null) return;
  const there = kept(state).find((one) => one.iteration === state.wished);
  if (!there) return;
  store.set({ picked: there, wished: null });
  announce(t("recall.done", { at: count(there.iteration) }));
}

store.subscribe(arrive);
