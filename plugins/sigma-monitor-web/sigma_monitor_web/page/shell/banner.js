// A bar for alerts: connection lost, training failed, invalid link.
import { html } from "../lib.js";
import { Icon } from "../widgets/icon.js";
import { actions, good, phase, shelved } from "../playback.js";
import { maySteer, useStore } from "../store.js";
import { count } from "../numbers.js";
import { t } from "../words.js";

export function Banner() {
  const state = useStore((all) => all);
  const now = phase(state);
  if (now === "offline") return html`<div class="banner" role="alert"><${Icon} name="wait" /><span>${t("banner.offline")}</span></div>`;
  if (now === "denied" && (state.trouble || !state.login)) return html`<div class="banner bad" role="alert"><${Icon} name="warn" /><span>${state.trouble || t("banner.denied")}</span></div>`;
  if (state.trouble && now !== "empty") return html`<div class="banner bad" role="alert"><${Icon} name="warn" /><span>${t("banner.trouble", { why: state.trouble })}</span></div>`;
  if (now !== "failed") return null;
  const to = maySteer(state) && !shelved(state) ? good(state) : null;
  return html`<div class="banner bad" role="alert"><${Icon} name="warn" /><span>${state.status.why || t("banner.failed")}</span>
    ${to === null ? null : html`<button type="button" onClick=${() => actions.rewind(to)}>${t("do.rewind.to", { at: count(to) })}</button>`}</div>`;
}
