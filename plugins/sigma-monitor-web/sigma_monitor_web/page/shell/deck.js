// Playback: always in sight, the numbers at fixed places, the progress of the whole run along its edge.
import { html } from "../lib.js";
import { Icon } from "../widgets/icon.js";
import { actions, allowed, going, kept, left, phase, shelved, summary, wording } from "../playback.js";
import { find, goTo } from "../stage.js";
import { ofTrainer, store, useStore } from "../store.js";
import { count, duration, figure } from "../numbers.js";
import { t } from "../words.js";

const MAIN = { empty: "train", finished: "go", paused: "go", failed: "go", loading: "train", denied: "train" };

function pick() {
  const state = store.get();
  const states = kept(state).filter((one) => !one.recalled && one.iteration < (ofTrainer(state)?.iteration ?? 0));
  goTo("train");
  store.set({ picked: states.at(-1) ?? null, wished: null });
  requestAnimationFrame(() => find("#rewind")?.focus());
}

function Transport({ state }) {
  const can = allowed(state), runs = going(state);
  const main = shelved(state) ? "resume" : runs ? "pause" : (MAIN[phase(state)] ?? "pause");
  return html`<div class="transport" role="group" aria-label=${t("playback.controls")}>
    <button class="primary" id="play" type="button" aria-keyshortcuts="Space" disabled=${!can.toggle} onClick=${actions.toggle}><${Icon} name=${runs || main === "pause" ? "pause" : "play"} /><span>${t(`do.${main}`)}</span></button>
    <button id="one-iteration" type="button" aria-keyshortcuts="ArrowRight" title=${`${t("do.iteration.long")} (→)`} disabled=${!can.step} onClick=${actions.iteration}><${Icon} name="step" /><span>${t("do.iteration")}</span></button>
    <button id="one-epoch" type="button" aria-keyshortcuts="Shift+ArrowRight" title=${`${t("do.epoch.long")} (⇧→)`} disabled=${!can.step} onClick=${actions.epoch}><${Icon} name="epoch" /><span>${t("do.epoch")}</span></button>
    <button id="rewind-button" type="button" aria-keyshortcuts="R" title=${`${t("do.rewind.long")} (R)`} disabled=${!can.rewind} onClick=${pick}><${Icon} name="rewind" /><span>${t("do.rewind")}</span></button>
  </div>`;
}

function Stats({ state }) {
  const about = ofTrainer(state);
  const [time, unit] = duration(left(state, about));
  const of = (whole) => html` <span>${t("of", { whole })}</span>`;
  return html`<dl class="stats">
    <div><dt>${t("epoch")}</dt><dd><b>${about ? count(about.epoch) : "–"}</b>${about?.epochs ? of(count(about.epochs)) : ""}</dd></div>
    <div><dt>${t("iteration")}</dt><dd><b>${about ? count(about.iteration) : "–"}</b>${about?.goal ? of(count(about.goal)) : ""}</dd></div>
    <div class="speed"><dt>${t("speed")}</dt><dd><b>${state.speed ? (state.speed >= 100 ? count(state.speed) : figure(state.speed)) : "–"}</b> <span>${t("speed.unit")}</span></dd></div>
    <div class="left"><dt>${t("time.left")}</dt><dd><b>${time}</b> <span class="unit">${unit}</span></dd></div>
  </dl>`;
}

export function Deck() {
  const state = useStore((all) => all);
  const can = allowed(state), about = ofTrainer(state), [word, beside] = wording(state);
  const share = about?.goal ? about.iteration / about.goal : 0;
  return html`<section class="deck" data-state=${phase(state)} aria-label=${t("playback")}>
    <${Transport} state=${state} />
    <div class="status">
      <p class="state"><span class="lamp" aria-hidden="true"></span><b>${word}</b><span class="sub" title=${beside}>${beside}</span></p>
      <${Stats} state=${state} />
    </div>
    <div class="ends" role="group" aria-label=${t("playback.ends")}>
      <button id="save" type="button" aria-keyshortcuts="S" title=${`${t("do.save.long")} (S)`} disabled=${!can.save} onClick=${actions.save}><${Icon} name="save" /><span>${t("do.save")}</span></button>
      <button id="stop" type="button" title=${t("do.stop.long")} disabled=${!can.stop} onClick=${actions.stop}><${Icon} name="stop" /><span>${t("do.stop")}</span></button>
    </div>
    <progress id="whole" max="1" value=${share} aria-label=${summary(about) || t("progress.none")}></progress>
  </section>`;
}
