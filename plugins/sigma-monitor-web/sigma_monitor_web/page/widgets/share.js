// What one takes along from the page: the link to exactly this, and the command that trains the run again.
import { html, useEffect, useState } from "../lib.js";
import { logOut, readingToken } from "../entering.js";
import { link } from "../link.js";
import { request } from "../session.js";
import { permission, want, wanted } from "../notify.js";
import { Copyable } from "./copyable.js";
import { maySteer, useStore } from "../store.js";
import { count } from "../numbers.js";
import { t } from "../words.js";

export function Link() {
  useStore((state) => state);
  return html`<${Copyable} label=${t("share.link")} text=${link()} note=${t("share.link.note")} />`;
}

// The same for people who may only watch, and the end of one's own session.
export function Others() {
  const [token, set] = useState(null), person = useStore((state) => state.person), steers = useStore(maySteer);
  useStore((state) => state);
  useEffect(() => { if (steers) readingToken().then(set); }, [steers]);
  return html`${token ? html`<${Copyable} label=${t("share.read")} text=${link(token)} note=${t("share.read.note")} />` : null}
    ${person ? html`<p class="row"><span class="note">${t("login.as", { name: person })}</span><button class="quiet push" type="button" onClick=${logOut}>${t("login.leave")}</button></p>` : null}`;
}

// A switch for notifications: the browser asks once it is pressed. Each answer is a state of its own, so that a refusal is drawn.
export function Notify() {
  const [{ on }, set] = useState({ on: wanted() }), reason = `notify.${permission()}`, why = t.has(reason) ? t(reason) : "";
  return html`<label class="check"><input type="checkbox" checked=${on} disabled=${Boolean(why)} onChange=${(event) => want(event.target.checked).then((granted) => set({ on: granted }))} /> ${t("notify.me")}</label>${why ? html`<p class="note">${why}</p>` : null}`;
}

export function Again() {
  const [found, set] = useState(null), [why, say] = useState(""), online = useStore((state) => state.connection === "online");
  useEffect(() => { if (online) request("reproduce").then(set, (error) => say(error.message)); }, [online]);
  if (!found) return html`<p class="note">${why || t("loading")}</p>`;
  const note = found.edits ? t("share.again.edits", { n: count(found.edits) }) : t("share.again.note", { seed: found.seed });
  return html`<${Copyable} label=${t("share.again")} text=${found.command} note=${note} />
    ${found.replay ? html`<${Copyable} label=${t("share.replay")} text=${found.replay} note=${t("share.replay.note")} />` : null}`;
}
