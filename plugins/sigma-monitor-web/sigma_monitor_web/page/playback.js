// The state of playback: its label, its lamp, the actions of the buttons. Nothing here draws.
import { ENDS, ofTrainer, pulse, store } from "./store.js";
import { command, resume } from "./steer.js";
import { count, spoken } from "./numbers.js";
import { t } from "./words.js";

const KNOWN = ["running", "paused", "compiling", "created", "prepared", ...ENDS];

// One of: loading, denied, offline, empty, compiling, running, paused, finished, failed.
export function phase({ connection, status, trainer }) {
  const said = status?.status;
  if (connection === "denied") return "denied";
  if (ENDS.includes(said)) return said === "failed" ? "failed" : "finished"; // also once its process has gone
  if (connection === "offline" && status) return "offline";
  if (!status || !KNOWN.includes(said)) return "loading";
  if (said === "created" || said === "prepared") return (status.trainers?.[trainer]?.iteration ?? 0) > 0 ? "paused" : "empty";
  return said;
}

// The label of the state, and its details.
export function wording(state) {
  const now = phase(state), about = ofTrainer(state);
  const how = now === "finished" ? state.status.status : now;
  return [t(`state.${how}`), beside(now, state, about)];
}

function beside(now, state, about) {
  const fate = state.fates.playback;
  if (fate?.state === "refused") return fate.why;
  if (fate?.state === "pending" && now !== "offline") return t(`doing.${fate.command}`);
  if (fate?.state === "applied" && fate.command === "save" && now !== "offline") return t("saved.at", { at: count(fate.at) });
  if (now === "compiling") return progress(state.status.progress);
  if (now === "offline") return t("offline.since", { time: spoken((performance.now() - pulse.seen) / 1000) });
  if (now === "finished") return state.status.why ?? ""; // the reason is in the bar below
  if (now === "paused") return t("paused.where");
  if (now === "running") return t("branch", { n: about?.branch ?? 0 });
  if (now === "empty") return t("empty.nothing");
  if (now === "failed" && allowed(state).toggle && !shelved(state)) return t("failed.waits");
  return "";
}

function progress(at) {
  if (!at) return "";
  const step = at.steps ? t("progress.step", { step: at.step, steps: at.steps }) : "";
  const passed = Number.isFinite(at.second) && at.second >= 1 ? spoken(at.second) : "";
  return [at.text, step, passed].filter(Boolean).join(", ");
}

export const left = ({ speed, status }, about) =>
  about?.goal && speed > 0 && !["failed", "stopped", "pruned", "interrupted"].includes(status?.status) ? Math.max(0, about.goal - about.iteration) / speed : NaN;

// The buttons that can be pressed now.
export function allowed(state) {
  const now = phase(state), steers = (state.hello?.scopes ?? []).includes("steer");
  const live = steers && state.connection === "online";
  return {
    steer: live,
    toggle: live && now !== "loading" && (now !== "finished" || shelved(state)),
    step: live && (["running", "paused", "empty"].includes(now) || (now === "failed" && !shelved(state))),
    rewind: live && state.states.length > 0 && !shelved(state),
    save: live && now !== "loading" && now !== "empty" && !shelved(state),
    stop: live && (["running", "paused", "compiling"].includes(now) || (now === "failed" && !shelved(state))),
  };
}

// A run that does not train now, seen in its folder: it can be resumed, and nothing else.
export const shelved = (state) => state.where === "ui" && state.hello?.process === state.process && ["finished", "failed"].includes(phase(state));

// The last good iteration of a trainer that failed and is still where it failed, else null.
export function good({ journal, trainer, status }) {
  const end = journal.map(([, row]) => row).filter((row) => row.trainer === trainer && row.event === "end").at(-1);
  return end?.failed && end.good < status?.trainers?.[trainer]?.iteration ? end.good : null;
}

export const going = (state) => ["running", "compiling"].includes(phase(state));

export const actions = {
  toggle: () => (shelved(store.get()) ? resume() : going(store.get()) ? command("pause") : command("go")),
  iteration: () => command("step", { count: 1, scale: "iteration" }),
  epoch: () => command("step", { count: 1, scale: "epoch" }),
  save: () => command("save"),
  stop: () => command("stop"),
  undo: () => command("undo", {}, "undo"),
  rewind: (to) => command("rewind", { to, scale: "iteration" }).then((done) => { if (done) store.set({ picked: null }); }),
};

// The states that can be looked at, oldest first, each once: those that can be gone back to, and those that were computed again.
export function kept({ states, recalls, trainer, status }) {
  const branch = status?.trainers?.[trainer]?.branch;
  const mine = states.filter((one) => one.branch === undefined || one.branch === null || one.branch === branch || one.kept || one.saved);
  const byIteration = new Map(recalls.filter((one) => one.state === "done").map(({ iteration, epoch }) => [iteration, { iteration, epoch, kept: false, saved: false, recalled: true }]));
  for (const one of mine) byIteration.set(one.iteration, { ...byIteration.get(one.iteration), ...one, recalled: false, saved: one.saved || byIteration.get(one.iteration)?.saved });
  return [...byIteration.values()].sort((a, b) => a.iteration - b.iteration);
}

// What there is at an iteration: the state that is kept there, or a moment between two of them, which can be seen, and not gone back to.
export const momentAt = (states, iteration) => states.find((one) => one.iteration === iteration) ?? { iteration, between: true };

// The kept state nearest to an iteration, or null where now is nearer.
export function nearest(states, now, iteration) {
  let best = null, distance = Math.abs(now - iteration);
  for (const one of states) {
    if (one.iteration < now && Math.abs(one.iteration - iteration) < distance) [best, distance] = [one, Math.abs(one.iteration - iteration)];
  }
  return best;
}

export const summary = (about) =>
  about ? t("progress.whole", { iteration: count(about.iteration), goal: about.goal ? count(about.goal) : "∞" }) : "";
