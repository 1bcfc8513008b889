// Runs: the folders that `sigma ui` knows, with their settings and results; what differs from the open one is marked.
import { html, useEffect, useState } from "../lib.js";
import { Icon } from "../widgets/icon.js";
import { request } from "../session.js";
import { useStore } from "../store.js";
import { count, figure, spoken } from "../numbers.js";
import { t } from "../words.js";

const SIGNS = { running: ["go", "play"], paused: ["", "pause"], finished: ["", "check"], stopped: ["", "stop"], failed: ["bad", "warn"] };
const EVERY = 5000; // milliseconds

function useRuns() {
  const [found, set] = useState(undefined), online = useStore((state) => state.connection === "online" && Boolean(state.hello));
  useEffect(() => {
    if (!online) return undefined;
    const ask = () => request("runs").then(set).catch((error) => { if (error.kind !== "offline") set(null); });
    const again = setInterval(ask, EVERY);
    ask();
    return () => clearInterval(again);
  }, [online]);
  return found;
}

// The settings in which the runs differ, in the order of the first that has them.
export function differing(runs) {
  const names = [...new Set(runs.flatMap((run) => Object.keys(run.settings ?? {})))];
  return names.filter((name) => new Set(runs.map((run) => JSON.stringify(run.settings?.[name]))).size > 1);
}

const same = (one, other, name) => JSON.stringify(one.settings?.[name]) === JSON.stringify(other?.settings?.[name]);

function Row({ run, open, settings, results }) {
  const [tone, sign] = SIGNS[run.status] ?? ["", "dot"];
  const mine = run.name === open?.name;
  return html`<tr class=${mine ? "me" : ""}><th scope="row"><code>${run.name}</code></th><td><span class=${`st ${tone}`}><${Icon} name=${sign} />${t(`run.${run.status}`)}</span>${run.why ? html`<small>${run.why}</small>` : null}</td>
    <td data-k=${t("epoch")}>${count(run.epoch)}${run.epochs ? ` ${t("of", { whole: count(run.epochs) })}` : ""}</td>
    ${results.map((name) => html`<td class="r" key=${name} data-k=${name}><b>${figure(run.values?.[name])}</b></td>`)}
    ${settings.map((name) => html`<td key=${name} data-k=${name}>${same(run, open, name) || !open ? String(run.settings?.[name] ?? "") : html`<mark>${String(run.settings?.[name] ?? "–")}</mark>`}</td>`)}
    <td class="r" data-k=${t("journal.head.when")}>${spoken(run.seconds)}</td></tr>`;
}

export function Runs() {
  const runs = useRuns(), hello = useStore((state) => state.hello);
  if (!runs) return html`<section class="card" aria-labelledby="h-all"><div class="card-head"><h2 id="h-all">${t("runs.all")}</h2></div><p class="empty">${runs === undefined ? t("loading") : html`${t("runs.one")} <code>sigma ui</code>`}</p></section>`;
  const open = runs.find((run) => hello?.folder?.endsWith(run.name)) ?? runs[0];
  const settings = differing(runs), results = [...new Set(runs.flatMap((run) => Object.keys(run.values ?? {})))].slice(0, 4);
  return html`<section class="card" aria-labelledby="h-all"><div class="card-head"><h2 id="h-all">${t("runs.all")}</h2>${open ? html`<span class="note">${t("runs.differs")} <b>${open.name}</b></span>` : null}</div>
    ${runs.length ? html`<div class="table-wrap" tabindex="0" role="group" aria-label=${t("runs.all")}><table class="list"><thead><tr><th scope="col">${t("runs.run")}</th><th scope="col">${t("runs.state")}</th><th scope="col">${t("epoch")}</th>
      ${results.map((name) => html`<th scope="col" class="r" key=${name}>${name}</th>`)}${settings.map((name) => html`<th scope="col" key=${name}>${name}</th>`)}<th scope="col" class="r">${t("journal.head.when")}</th></tr></thead>
      <tbody>${runs.map((run) => html`<${Row} key=${run.name} run=${run} open=${open} settings=${settings} results=${results} />`)}</tbody></table></div>` : html`<p class="empty">${t("runs.none")}</p>`}</section>`;
}
