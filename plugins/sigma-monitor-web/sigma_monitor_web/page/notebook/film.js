// Playback of a run in a notebook: a slider over its moments, a button that plays them, and the values at the one that is shown.
import { html, useEffect, useRef, useState } from "../lib.js";
import { makeScene } from "../charts/scene.js";
import { series } from "../charts/lanes.js";
import { useLanes } from "../charts/uselanes.js";
import { actions, allowed, kept } from "../playback.js";
import { counts } from "../series.js";
import { request } from "../session.js";
import { ofTrainer, store, useStore } from "../store.js";
import { Icon } from "../widgets/icon.js";
import { shown as steered } from "../widgets/knobs.js";
import { count, exact, figure } from "../numbers.js";
import { t } from "../words.js";

const LASTS = 12000; // milliseconds of a whole film, however many frames there are
const EVERY = 50; // milliseconds between two of them, at least
const MOST = 16; // points of an address in an answer

// The newest point of some stretches until a moment, on the branches that count; null if there is none.
export function newest(stretches, alive, iteration) {
  let best = null;
  for (const { branch, iteration: places, value } of stretches) {
    places.forEach((at, i) => { if (at <= iteration && counts(alive, branch, at) && at >= (best?.iteration ?? 0)) best = { iteration: at, value: value[i] }; });
  }
  return best;
}

// The values of addresses at a moment: the store's newest points until then, sought on the branch before where its own has none yet.
export async function valuesAt(addresses, alive, iteration, ask) {
  const values = {};
  let wanted = addresses, at = iteration;
  while (wanted.length) {
    const answer = await ask({ addresses: wanted, span: [at, at], most: MOST });
    for (const address of wanted) values[address] = newest(answer[address]?.stretches ?? [], alive, iteration);
    const before = Math.max(-1, ...alive.map((branch) => branch.from).filter((from) => from < at));
    wanted = before < 0 ? [] : wanted.filter((address) => !values[address]);
    at = before;
  }
  return values;
}

// The values at the moment, asked for one after the other: while an answer is awaited, moments are skipped.
function useValues(entries, alive, at) {
  const addresses = entries.map((entry) => entry.address), settings = entries.map((entry) => (entry.settable ? entry.value : ""));
  const [shown, show] = useState({ at: null, values: {}, why: "" }), busy = useRef(false), next = useRef(null);
  const run = async () => {
    if (busy.current) return;
    busy.current = true;
    while (next.current) {
      const [names, line, moment] = next.current;
      next.current = null;
      await valuesAt(names, line, moment, (more) => request("series", more)).then((values) => show({ at: moment, values, why: "" }), (error) => show({ at: moment, values: {}, why: error.message || t("say.offline") }));
    }
    busy.current = false;
  };
  useEffect(() => {
    next.current = at === null ? null : [addresses, alive, at];
    run();
  }, [addresses.join(" "), JSON.stringify(alive), JSON.stringify(settings), at]);
  return shown;
}

// Play from a moment to the end, at one speed.
function usePlaying(end) {
  const [playing, play] = useState(false), last = useRef(end);
  last.current = end;
  useEffect(() => {
    if (!playing) return undefined;
    const begun = performance.now(), from = store.get().film ?? 0;
    const timer = setInterval(() => {
      const at = Math.min(last.current, from + Math.round((last.current * (performance.now() - begun)) / LASTS));
      store.set({ film: at });
      if (at >= last.current) play(false);
    }, EVERY);
    return () => clearInterval(timer);
  }, [playing]);
  return [playing, () => {
    if (!playing && (store.get().film ?? end) >= end) store.set({ film: 0 });
    play(!playing);
  }];
}

function Values({ shown, entries }) {
  const rows = entries.map((entry) => ({ entry, found: shown.values[entry.address] }));
  return html`<div class="table-wrap" tabindex="0" role="group" aria-label=${t("film.values")}><table class="list figures film-values">
    <thead><tr><th scope="col">${t("series")}</th><th scope="col" class="r">${t("film.then")}</th><th scope="col" class="r">${t("now")}</th></tr></thead>
    <tbody>${rows.map(({ entry, found }) => html`<tr key=${entry.address}><th scope="row"><code>${entry.address}</code></th>
      <td class="r">${found ? (entry.settable ? exact : figure)(found.value) : "–"}</td><td class="r">${(entry.settable ? exact : figure)(entry.value)}</td></tr>`)}</tbody></table></div>`;
}

// The kept state before a moment, and the one after it.
const beside = (states, at) => [states.findLast((one) => one.iteration < at), states.find((one) => one.iteration > at)];

export function Film() {
  const state = useStore((all) => all), { film: at } = state, { lanes } = useLanes(), end = ofTrainer(state)?.iteration ?? 0;
  const { alive } = makeScene(state, lanes), [playing, toggle] = usePlaying(end), states = kept(state), here = states.find((one) => one.iteration === at);
  const drawn = lanes.flatMap((lane) => series(lane, state.entries, state.trainer)), set = steered(state.entries, state.pinned, state.trainer);
  const entries = [...new Map([...drawn, ...set].map((entry) => [entry.address, entry])).values()], shown = useValues(entries, alive, at);
  const go = (to) => store.set({ film: to }), [before, after] = beside(states, at ?? end), says = at === null ? t("now") : t("at.iteration", { n: count(at) });
  const fill = (element) => element?.style.setProperty("--v", `calc(8px + (100% - 16px) * ${end ? Math.min(1, (at ?? end) / end) : 1})`);
  const step = (name, one, icon) => html`<button class="icon" type="button" aria-label=${t(name)} title=${t(name)} disabled=${!one} onClick=${() => go(one.iteration)}><${Icon} name=${icon} /></button>`;
  return html`<section class="card film" aria-labelledby="h-film"><div class="card-head"><h2 id="h-film">${t("film")}</h2>
      <button type="button" disabled=${!end} onClick=${toggle}><${Icon} name=${playing ? "pause" : "play"} /><span>${t(playing ? "film.pause" : "film.play")}</span></button>
      ${step("film.before", before, "left")}
      <input ref=${fill} type="range" min="0" max=${Math.max(1, end)} step="1" value=${at ?? end} disabled=${!end} aria-label=${t("film.moment")} aria-valuetext=${says} onInput=${(event) => go(Number(event.target.value))} />
      ${step("film.after", after, "right")}
      <span class="note" role="status">${says}${here ? `, ${t("film.kept")}` : ""}</span>
      ${here && here.iteration < end && allowed(state).rewind ? html`<button type="button" onClick=${() => actions.rewind(here.iteration)}>${t("do.rewind")}</button>` : null}
      ${at === null ? null : html`<button class="quiet" type="button" onClick=${() => go(null)}>${t("film.now")}</button>`}</div>
    ${at === null ? null : shown.why ? html`<p class="empty">${shown.why}</p>` : html`<${Values} shown=${shown} entries=${entries} />`}</section>`;
}
