// The values at the moment that is picked in the time line, beside those of now.
import { html, useEffect, useRef, useState } from "../lib.js";
import { makeScene } from "../charts/scene.js";
import { series } from "../charts/lanes.js";
import { useLanes } from "../charts/uselanes.js";
import { frames } from "../film.js";
import { counts, curves, lines } from "../series.js";
import { request } from "../session.js";
import { useStore } from "../store.js";
import { shown as steered } from "../widgets/knobs.js";
import { count, exact, figure } from "../numbers.js";
import { t } from "../words.js";

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
      frames.waiting += 1;
      await valuesAt(names, line, moment, (more) => request("series", more)).then((values) => show({ at: moment, values, why: "" }), (error) => show({ at: moment, values: {}, why: error.message || t("say.offline") }));
      frames.waiting -= 1;
    }
    busy.current = false;
  };
  useEffect(() => {
    next.current = at === null ? null : [addresses, alive, at];
    run();
  }, [addresses.join(" "), JSON.stringify(alive), JSON.stringify(settings), at]);
  return shown;
}

// The value of an address now: the newest point of its curve, if the page has one.
export function valueNow({ address, value }, alive) {
  const curve = curves.get(address), line = curve && lines(curve, alive, "iteration").alive;
  return line?.length ? line.value[line.length - 1] : value;
}

function Table({ shown, entries, alive }) {
  const rows = entries.map((entry) => ({ entry, found: shown.values[entry.address], now: valueNow(entry, alive) }));
  return html`<div class="table-wrap" tabindex="0" role="group" aria-label=${t("film.values")}><table class="list figures then-values">
    <thead><tr><th scope="col">${t("series")}</th><th scope="col" class="r">${t("film.then")}</th><th scope="col" class="r">${t("now")}</th></tr></thead>
    <tbody>${rows.map(({ entry, found, now }) => html`<tr key=${entry.address}><th scope="row"><code>${entry.address}</code></th>
      <td class="r">${found ? (entry.settable ? exact : figure)(found.value) : "–"}</td><td class="r">${(entry.settable ? exact : figure)(now)}</td></tr>`)}</tbody></table></div>`;
}

export function Values() {
  const state = useStore((all) => all), { lanes } = useLanes(), at = state.picked?.iteration ?? null, { alive } = makeScene(state, lanes);
  const drawn = lanes.flatMap((lane) => series(lane, state.entries, state.trainer)), set = steered(state.entries, state.pinned, state.trainer);
  const entries = [...new Map([...drawn, ...set].map((entry) => [entry.address, entry])).values()], shown = useValues(entries, alive, at);
  if (at === null) return null;
  return html`<section class="card" aria-labelledby="h-values"><div class="card-head"><h2 id="h-values">${t("film.values")}</h2><span class="note">${t("at.iteration", { n: count(shown.at ?? at) })}</span></div>
    ${shown.why ? html`<p class="empty">${shown.why}</p>` : html`<${Table} ...${{ shown, entries, alive }} />`}</section>`;
}
