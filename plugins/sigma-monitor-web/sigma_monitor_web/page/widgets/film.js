// The controls of the film; and the bar that says, in views without a time line, which moment they show.
import { html } from "../lib.js";
import { PACES, past, paceOf, setPace, toggle } from "../film.js";
import { store, useStore } from "../store.js";
import { count, exact } from "../numbers.js";
import { t } from "../words.js";
import { Icon } from "./icon.js";

export function Film() {
  const state = useStore((all) => all), { playing } = state, what = t(playing ? "film.pause" : "film.play");
  return html`<div class="film" role="group" aria-label=${t("film")}><button class="icon" id="film" type="button" aria-label=${what} title=${`${what} (P)`} aria-keyshortcuts="P" disabled=${!playing && !past(state).length} onClick=${toggle}><${Icon} name=${playing ? "pause" : "play"} /></button>
    <select aria-label=${t("film.pace")} title=${t("film.pace")} value=${String(paceOf(state))} onChange=${(event) => setPace(Number(event.target.value))}>${PACES.map((one) => html`<option key=${one} value=${String(one)}>${t("film.rate", { n: exact(one) })}</option>`)}</select></div>`;
}

export const where = (picked) => (picked.between ? t("film.between", { at: count(picked.iteration) }) : t("film.at", { at: count(picked.iteration), epoch: count(picked.epoch) }));

// The view shows the picked state, and how to go back to now.
export function Moment() {
  const picked = useStore((state) => state.picked);
  if (!picked) return null;
  return html`<section class="moment" aria-label=${t("film")}><${Film} /><p>${where(picked)}</p><button type="button" class="push" onClick=${() => store.set({ picked: null })}>${t("film.now")}</button></section>`;
}
