// Commands that a person gives, and the fate of each at the place where it was given.
import { request } from "./session.js";
import { ofTrainer, store } from "./store.js";
import { announce } from "./announce.js";
import { count } from "./numbers.js";
import { t } from "./words.js";

// The moment at which a ticket was applied: that of its trainer, or of the first of several.
export const moment = ({ moments, trainer }) => moments?.[trainer] ?? Object.values(moments ?? {})[0];

const put = (place, fate) => store.set(({ fates }) => ({ fates: { ...fates, [place]: fate } }));

export const forget = (place) => store.set(({ fates }) => ({ fates: Object.fromEntries(Object.entries(fates).filter(([key]) => key !== place)) }));

// Send a command; its fate (pending, applied, refused) stands under `place`, with whatever `more` says about it.
async function send(place, about, asked, more = {}) {
  put(place, { state: "pending", ...more });
  try {
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

export function assign(address, value, was, about = address) {
  return send(address, `${about} ${value}`, () => request("set", { pattern: address, value }), { value, was });
}
