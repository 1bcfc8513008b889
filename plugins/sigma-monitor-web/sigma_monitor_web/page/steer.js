// Commands that a person gives, and the fate of each at the place where it was given.
import { reopen, request } from "./session.js";
import { ofTrainer, store } from "./store.js";
import { announce } from "./announce.js";
import { count } from "./numbers.js";
import { t } from "./words.js";

const TRIES = 60, BETWEEN = 1000; // milliseconds

// The moment at which a ticket was applied: that of its trainer, or of the first of several.
export const moment = ({ moments, trainer }) => moments?.[trainer] ?? Object.values(moments ?? {})[0];

const put = (place, fate) => store.set(({ fates }) => ({ fates: { ...fates, [place]: fate } }));

export const forget = (place) => store.set(({ fates }) => ({ fates: Object.fromEntries(Object.entries(fates).filter(([key]) => key !== place)) }));

// Send a command, unless the run is silent; its result (pending, applied, refused) is stored under `place`, with the fields of `more`.
async function send(place, about, asked, more = {}) {
  put(place, { state: "pending", ...more });
  try {
    const { silent } = store.get();
    if (silent) throw new Error(t("say.nothing", { n: silent }));
    const ticket = await asked();
    const refused = ticket.state === "refused";
    put(place, { ...more, state: ticket.state, at: moment(ticket)?.iteration ?? ofTrainer(store.get())?.iteration, why: ticket.why ?? "" });
    announce(refused ? t("say.refused", { what: about, why: ticket.why }) : t("say.applied", { what: about, at: count(moment(ticket)?.iteration ?? ofTrainer(store.get())?.iteration) }));
    return !refused;
  } catch (error) {
    const why = error.message || t("say.offline");
    put(place, { ...more, state: "refused", why });
    announce(t("say.refused", { what: about, why }));
    return false;
  }
}

export function command(name, more = {}, place = "playback", about = t(`did.${name}`)) {
  const { trainer } = store.get();
  return send(place, about, () => request("command", { name, arguments: more, trainer }), { command: name });
}

// Resume a run from its folder, in a new process.
export function resume() {
  const run = (store.get().hello?.folder ?? "").split("/").filter(Boolean).at(-1);
  return send("playback", t("runs.resume"), () => request("resume", { run }).then((process) => (process === null ? ended() : begun(run))), { command: "resume" });
}

function ended() {
  reopen();
  return { state: "applied" };
}

// Wait until a run that was resumed trains, and look at it anew.
async function begun(run) {
  for (let tries = 0; tries < TRIES; tries++) {
    await new Promise((done) => setTimeout(done, BETWEEN));
    const runs = await request("runs");
    if (runs.find((one) => one.name === run)?.status === "running") {
      setTimeout(reopen, BETWEEN); // its socket opens a moment later
      return { state: "applied" };
    }
  }
  return { state: "refused", why: t("say.silent") };
}

export function assign(address, value, was, about = address) {
  return send(address, `${about} ${value}`, () => request("set", { pattern: address, value }), { value, was });
}
