// Runs: the folders that `sigma ui` knows, with their settings and results; what differs from the open one is marked.
import { html, useEffect, useState } from "../lib.js";
import { Sentences } from "../widgets/advice.js";
import { Icon } from "../widgets/icon.js";
import { Overlay } from "../charts/overlay.js";
import { SERIES } from "../charts/palette.js";
import { request } from "../session.js";
import { useStore } from "../store.js";
import { count, figure, spoken } from "../numbers.js";
import { t } from "../words.js";

const SIGNS = { running: ["go", "play"], finished: ["", "check"], stopped: ["", "stop"], pruned: ["", "stop"], failed: ["bad", "warn"], interrupted: ["", "no"], unreadable: ["bad", "warn"] };
const ENDED = ["finished", "pruned"];
const EVERY = 5000; // milliseconds
const OVERLAID = 3; // unasked
const RESULTS = 4; // columns
const MEAN = /(^|\.)training\.(loss|cost\..+)$/; // of which a summary has the mean of the last epoch

function useRuns() {
  const [found, set] = useState(undefined), online = useStore((state) => state.connection === "online" && Boolean(state.hello));
  const ask = () => request("runs").then(set).catch((error) => { if (error.kind !== "offline") set(null); });
  useEffect(() => {
    if (!online) return undefined;
    const again = setInterval(ask, EVERY);
    ask();
    return () => clearInterval(again);
  }, [online]);
  return [found, ask];
}

// The settings in which the runs differ, in the order of the first that has them.
export function differing(runs) {
  const names = [...new Set(runs.flatMap((run) => Object.keys(run.settings ?? {})))];
  return names.filter((name) => new Set(runs.map((run) => JSON.stringify(run.settings?.[name]))).size > 1);
}

const same = (one, other, name) => JSON.stringify(one.settings?.[name]) === JSON.stringify(other?.settings?.[name]);
const shown = (value) => (value === null || value === undefined ? "–" : typeof value === "object" ? JSON.stringify(value) : String(value));

// What can be done with a run folder: each once more asked for, where it cannot be taken back.
function Actions({ run, mine, steers, again }) {
  const [state, set] = useState(""), [why, say] = useState("");
  const send = (what) => {
    set("pending");
    request(what, { run: run.name }).then((answer) => { set(""); say(what === "replay" ? t(answer.identical ? "runs.identical" : "runs.different") : ""); again(); }, (error) => { set(""); say(error.message); });
  };
  const idle = run.status !== "running";
  if (!steers) return html`<a class="button mini" href=${`?run=${encodeURIComponent(run.name)}#train`}>${t("runs.open")}</a>`;
  return html`<span class="row tight">${mine ? null : html`<a class="button mini" href=${`?run=${encodeURIComponent(run.name)}#train`}>${t("runs.open")}</a>`}
    ${idle ? html`<button class="mini" type="button" disabled=${state === "pending"} onClick=${() => send(ENDED.includes(run.status) ? "replay" : "resume")}>${t(ENDED.includes(run.status) ? "runs.replay" : "runs.resume")}</button>
      <button class=${`mini ${state === "sure" ? "" : "quiet"}`} type="button" onClick=${() => (state === "sure" ? send("delete") : set("sure"))} onBlur=${() => { if (state === "sure") set(""); }}>${t(state === "sure" ? "runs.sure" : "runs.delete")}</button>` : null}
    <span class="note" role="status">${why}</span></span>`;
}

const folder = (path) => (path ?? "").split("/").filter(Boolean).at(-1);

function Row({ run, open, settings, results, chosen, toggle, steers, again }) {
  const [tone, sign] = SIGNS[run.status] ?? ["", "dot"], mine = run.name === open?.name, at = chosen.indexOf(run.name);
  return html`<tr class=${mine ? "me" : ""}><td><label class="pick"><input type="checkbox" checked=${at >= 0} aria-label=${t("runs.overlay", { name: run.name })} onChange=${toggle} /><span class=${`swatch ${at < 0 ? "" : `c-${SERIES[at % SERIES.length]}`}`} aria-hidden="true"></span></label></td>
    <th scope="row"><code>${run.name}</code>${run.status === "unreadable" ? html`<p class="note">${run.why}</p>` : null}<${Sentences} of=${run.advice ?? []} /></th><td><span class=${`st ${tone}`}><${Icon} name=${sign} />${t.has(`run.${run.status}`) ? t(`run.${run.status}`) : run.status}</span></td>
    <td class="r" data-k=${t("axis.epoch.unit")}>${count(run.epochs)}</td>${results.map((name) => html`<td class="r" key=${name} data-k=${name}><b>${figure(run.metrics?.[name])}</b>${Object.entries(run.baselines ?? {}).filter(([, values]) => Number.isFinite(values[name])).map(([of, values]) => html`<small key=${of} class="baseline">${of} ${figure(values[name])}</small>`)}</td>`)}
    ${settings.map((name) => html`<td key=${name} data-k=${name}>${mine || same(run, open, name) ? shown(run.settings?.[name]) : html`<mark>${shown(run.settings?.[name])}</mark>`}</td>`)}
    <td class="r" data-k=${t("axis.clock.unit")}>${spoken(run.seconds ?? NaN)}</td><td class="full"><${Actions} ...${{ run, mine, steers, again }} /></td></tr>`;
}

function Table({ runs, open, chosen, toggle, steers, again }) {
  const settings = differing(runs), results = [...new Set(runs.flatMap((run) => Object.keys(run.metrics ?? {})))].slice(0, RESULTS);
  return html`<div class="table-wrap" tabindex="0" role="group" aria-label=${t("runs.all")}><table class="list"><thead><tr><th scope="col"><span class="sr">${t("runs.overlaid")}</span></th><th scope="col">${t("runs.run")}</th><th scope="col">${t("runs.state")}</th><th scope="col" class="r">${t("axis.epoch.unit")}</th>
    ${results.map((name) => html`<th scope="col" class="r" key=${name}>${name}${MEAN.test(name) ? html`<small class="baseline">${t("number.mean")}</small>` : null}</th>`)}${settings.map((name) => html`<th scope="col" key=${name} title=${name}>${name.split(".").slice(-2).join(".")}</th>`)}<th scope="col" class="r">${t("axis.clock.unit")}</th><td><span class="sr">${t("actions")}</span></td></tr></thead>
    <tbody>${[...runs].reverse().map((run) => html`<${Row} key=${run.name} ...${{ run, open, settings, results, chosen, steers, again }} toggle=${() => toggle(run.name)} />`)}</tbody></table></div>`;
}

export function Runs() {
  const [runs, again] = useRuns(), hello = useStore((state) => state.hello), [picked, pick] = useState(null);
  const steers = (hello?.scopes ?? []).includes("steer");
  if (!runs?.length) return html`<section class="card" aria-labelledby="h-all"><div class="card-head"><h2 id="h-all">${t("runs.all")}</h2></div><p class="empty">${runs === undefined ? t("loading") : runs ? t("runs.none") : html`${t("runs.one")} <code>sigma ui</code>`}</p></section>`;
  const open = runs.find((run) => run.name === folder(hello?.folder)) ?? runs.at(-1);
  const chosen = picked ?? [open.name, ...runs.map((run) => run.name).reverse().filter((name) => name !== open.name)].slice(0, OVERLAID);
  const toggle = (name) => pick(chosen.includes(name) ? chosen.filter((one) => one !== name) : [...chosen, name]);
  const values = [...new Set(runs.flatMap((run) => Object.keys(run.metrics ?? {})))];
  return html`<section class="card" aria-labelledby="h-all"><div class="card-head"><h2 id="h-all">${t("runs.all")}</h2><span class="note">${t("runs.differs")} <b>${open.name}</b></span></div>
      <${Table} ...${{ runs, open, chosen, toggle, steers, again }} /></section>
    ${values.length ? html`<${Overlay} chosen=${chosen} values=${values} />` : null}`;
}
