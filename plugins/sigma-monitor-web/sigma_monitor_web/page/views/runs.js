// Runs: the folders that `sigma ui` knows, with their settings and results; what differs from the open one is marked.
import { html, useEffect, useState } from "../lib.js";
import { Sentences } from "../widgets/advice.js";
import { Icon } from "../widgets/icon.js";
import { Overlay } from "../charts/overlay.js";
import { SERIES } from "../charts/palette.js";
import { Difference, shown } from "../runs/difference.js";
import { Marks, Star, Tags } from "../runs/marks.js";
import { useTable } from "../runs/query.js";
import { tall, useRows } from "../runs/rows.js";
import { request } from "../session.js";
import { useSpots, useStore } from "../store.js";
import { count, figure, spoken } from "../numbers.js";
import { t } from "../words.js";

const SIGNS = { running: ["go", "play"], finished: ["", "check"], stopped: ["", "stop"], pruned: ["", "stop"], failed: ["bad", "warn"], interrupted: ["", "no"], unreadable: ["bad", "warn"] };
const ENDED = ["finished", "pruned"];
const OVERLAID = 3; // unasked
const RESULTS = 4; // columns
const MEAN = /(^|\.)training\.(loss|cost\..+)$/; // of which a summary has the mean of the last epoch
const TYPING = 300; // milliseconds until a filter is applied

const same = (one, other, name) => JSON.stringify(one.settings?.[name]) === JSON.stringify(other?.settings?.[name]);
const folder = (path) => (path ?? "").split("/").filter(Boolean).at(-1);

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
    <${Marks} ...${{ run, again }} /><span class="note" role="status">${why}</span></span>`;
}

function Row({ run, number, open, settings, results, chosen, toggle, steers, again }) {
  const [tone, sign] = SIGNS[run.status] ?? ["", "dot"], mine = run.name === open, at = chosen.indexOf(run.name);
  return html`<tr class=${mine ? "me" : ""} aria-rowindex=${number + 2}><td><span class="row tight"><label class="pick"><input type="checkbox" checked=${at >= 0} aria-label=${t("runs.overlay", { name: run.name })} onChange=${toggle} /><span class=${`swatch ${at < 0 ? "" : `c-${SERIES[at % SERIES.length]}`}`} aria-hidden="true"></span></label><${Star} ...${{ run, steers, again }} /></span></td>
    <th scope="row">${run.title ? html`<b>${run.title}</b> ` : null}<code>${run.name}</code><${Tags} run=${run} />${run.status === "unreadable" ? html`<p class="note">${run.why}</p>` : null}<${Sentences} of=${run.advice ?? []} /></th><td><span class=${`st ${tone}`}><${Icon} name=${sign} />${t.has(`run.${run.status}`) ? t(`run.${run.status}`) : run.status}</span></td>
    <td class="r" data-k=${t("axis.epoch.unit")}>${count(run.epochs)}</td>${results.map((name) => html`<td class="r" key=${name} data-k=${name}><b>${figure(run.metrics?.[name])}</b>${Object.entries(run.baselines ?? {}).filter(([, values]) => Number.isFinite(values[name])).map(([of, values]) => html`<small key=${of} class="baseline">${of} ${figure(values[name])}</small>`)}</td>`)}
    ${settings.map(([name, base]) => html`<td key=${name} data-k=${name}>${mine || !base || same(run, base, name) ? shown(run.settings?.[name]) : html`<mark>${shown(run.settings?.[name])}</mark>`}</td>`)}
    <td class="r" data-k=${t("axis.clock.unit")}>${spoken(run.seconds ?? NaN)}</td><td class="full"><${Actions} ...${{ run, mine, steers, again }} /></td></tr>`;
}

// A heading that sorts: first in one direction, then in the other, then no longer.
function Head({ address, query, sort, right, children }) {
  const on = query.sort === address, way = on ? (query.descending ? "descending" : "ascending") : "none";
  const next = () => sort(!on ? { sort: address, descending: Boolean(right) } : query.descending === Boolean(right) ? { sort: address, descending: !right } : { sort: "", descending: false });
  return html`<th scope="col" class=${right ? "r" : ""} aria-sort=${way} title=${address}><button class="sort" type="button" onClick=${next}>${children}<span aria-hidden="true">${on ? (query.descending ? " ↓" : " ↑") : ""}</span></button></th>`;
}

function Table({ found, base, open, query, sort, rows, chosen, toggle, steers, again }) {
  const results = found.metrics.slice(0, RESULTS), settings = found.settings.map((name) => [name, base]), head = { query, sort };
  const after = Math.max(0, found.total - found.start - found.rows.length), one = rows.height();
  return html`<div class="table-wrap tall" tabindex="0" role="group" aria-label=${t("runs.all")} ref=${rows.frame} onScroll=${rows.scroll}><table class="list" aria-rowcount=${found.total + 1}><thead><tr aria-rowindex="1"><th scope="col"><span class="sr">${t("runs.overlaid")}</span></th><${Head} ...${head} address="name">${t("runs.run")}<//><${Head} ...${head} address="status">${t("runs.state")}<//><${Head} ...${head} address="epochs" right>${t("axis.epoch.unit")}<//>
    ${results.map((name) => html`<${Head} ...${head} address=${name} right key=${name}>${name}${MEAN.test(name) ? html`<small class="baseline">${t("number.mean")}</small>` : null}<//>`)}${settings.map(([name]) => html`<${Head} ...${head} address=${name} key=${name}>${name.split(".").slice(-2).join(".")}<//>`)}<${Head} ...${head} address="seconds" right>${t("axis.clock.unit")}<//><td><span class="sr">${t("actions")}</span></td></tr></thead>
    <tbody ref=${rows.body}>${found.start ? html`<tr class="spacer" aria-hidden="true" ref=${tall(found.start * one)}></tr>` : null}${found.rows.map((run, i) => html`<${Row} key=${run.name} number=${found.start + i} ...${{ run, open, settings, results, chosen, steers, again }} toggle=${() => toggle(run.name)} />`)}
      ${after ? html`<tr class="spacer" aria-hidden="true" ref=${tall(after * one)}></tr>` : null}</tbody></table></div>`;
}

function Filter({ query, change, why, found }) {
  const [text, type] = useState(query.where);
  useEffect(() => {
    const soon = setTimeout(() => { if (text !== query.where) change({ where: text }); }, TYPING);
    return () => clearTimeout(soon);
  }, [text]);
  return html`<div class="row filter"><label class="stack wide"><span class="sr">${t("runs.filter")}</span><input type="search" autocomplete="off" spellcheck=${false} value=${text} placeholder='validation.accuracy above 0.9 and any tags.* equals "baseline"' aria-invalid=${String(Boolean(why))} onInput=${(event) => type(event.target.value)} /></label>
    <label class="inline"><input type="checkbox" checked=${query.archived} onChange=${(event) => change({ archived: event.target.checked })} />${t("runs.archived")}</label>
    <span class="note" role="status">${why || t("runs.count", { n: count(found.total), all: count(found.all) })}</span></div>`;
}

export function Runs() {
  const [query, set] = useSpots("runs", { where: "", sort: "", descending: false, archived: false }), rows = useRows(), [picked, pick] = useState(null);
  const [found, why, again] = useTable(query, rows.view.start, rows.view.count), hello = useStore((state) => state.hello), [base, mark] = useState(null);
  const steers = (hello?.scopes ?? []).includes("steer"), mine = folder(hello?.folder);
  const own = found?.rows.find((run) => run.name === mine);
  useEffect(() => { if (own) mark(own); }, [own]);
  if (!found?.all) return html`<section class="card" aria-labelledby="h-all"><div class="card-head"><h2 id="h-all">${t("runs.all")}</h2></div><p class="empty">${found === undefined ? t("loading") : found ? t("runs.none") : html`${t("runs.one")} <code>sigma ui</code>`}</p></section>`;
  const change = (more) => { set({ ...query, ...more }); rows.top(); };
  const open = base?.name ?? mine, chosen = picked ?? [...new Set([mine, ...found.rows.map((run) => run.name)])].filter(Boolean).slice(0, OVERLAID);
  const toggle = (name) => pick(chosen.includes(name) ? chosen.filter((one) => one !== name) : [...chosen, name]);
  return html`<section class="card" aria-labelledby="h-all"><div class="card-head"><h2 id="h-all">${t("runs.all")}</h2><span class="note">${t("runs.differs")} <b>${open}</b></span></div>
      <${Filter} ...${{ query, change, why, found }} />
      ${found.total ? html`<${Table} ...${{ found, base, open, query, rows, chosen, toggle, steers, again }} sort=${change} />` : html`<p class="empty">${t("runs.nothing")}</p>`}</section>
    ${found.metrics.length ? html`<${Overlay} chosen=${chosen} values=${found.metrics} />` : null}
    ${picked?.length === 2 ? html`<${Difference} one=${picked[0]} other=${picked[1]} />` : null}`;
}
