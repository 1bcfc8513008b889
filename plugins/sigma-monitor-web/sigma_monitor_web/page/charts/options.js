// The menu of a chart: scales, series, files, its place.
import { html, useState } from "../lib.js";
import { Combobox } from "../widgets/combobox.js";
import { focused } from "../stage.js";
import { useStore } from "../store.js";
import { parsed, typed } from "../numbers.js";
import { t } from "../words.js";
import { completions } from "./lanes.js";
import { List } from "./window.js";

export const FILES = ["SVG", "PNG", "CSV"];
const FEW = 8; // series that need no search

function Bounds({ lane, shape, change }) {
  const [low, high] = lane.bounds ?? [shape.low, shape.high].map((value) => Number(value.toPrecision(4)));
  const [why, say] = useState("");
  const show = (value) => (element) => { if (element && element !== focused()) element.value = typed(value); }; // what is being typed stays
  const free = (event) => { event.currentTarget.closest("fieldset").querySelector("input").focus(); say(""); change({ bounds: undefined }); };
  const put = (at, text) => {
    const bounds = [low, high].map((value, i) => (i === at ? parsed(text) : value));
    const wrong = bounds.includes(null) || !(bounds[1] > bounds[0]) || (lane.log && !(bounds[0] > 0));
    say(wrong ? t(lane.log ? "bounds.log" : "bounds.wrong") : "");
    if (!wrong) change({ bounds });
  };
  return html`<fieldset><legend>${t("bounds")}</legend><div class="row bounds">
    ${[["bounds.low", low], ["bounds.high", high]].map(([name, value], at) => html`<label class="inline" key=${name}>${t(name)} <input type="text" inputmode="decimal" ref=${show(value)} onChange=${(event) => put(at, event.target.value)} /></label>`)}
    ${lane.bounds ? html`<button class="quiet" type="button" onClick=${free}>${t("bounds.free")}</button>` : null}</div>
    <p class="note" role="status">${why}</p></fieldset>`;
}

function Series({ entries, hidden, change }) {
  const [text, type] = useState(""), off = new Set(hidden);
  const found = entries.filter((entry) => entry.address.toLowerCase().includes(text.toLowerCase().trim()));
  const put = (addresses, on) => change({ hidden: on ? hidden.filter((one) => !addresses.includes(one)) : [...new Set([...hidden, ...addresses])] });
  const row = (i) => html`<label class="check" key=${found[i].address}><input type="checkbox" checked=${!off.has(found[i].address)} onChange=${() => put([found[i].address], off.has(found[i].address))} /> <code>${found[i].address}</code></label>`;
  const all = (on) => html`<button class="quiet" type="button" onClick=${() => put(found.map((entry) => entry.address), on)}>${t(on ? "series.all" : "series.none")}</button>`;
  return html`<fieldset><legend>${t("series.n", { n: entries.length })}</legend>
    ${entries.length > FEW ? html`<div class="row"><input type="search" aria-label=${t("series.find")} placeholder=${t("series.find")} value=${text} onInput=${(event) => type(event.target.value)} />${all(true)}${all(false)}</div>` : null}
    <${List} key=${text} count=${found.length} label=${t("series")} row=${row} /></fieldset>`;
}

// `remove` is null for charts that stay where they are.
export function Options({ lane, shape, entries, change, remove, close, move, save }) {
  const known = useStore((state) => state.entries), trainer = useStore((state) => state.trainer);
  const add = (address) => change({ patterns: [...lane.patterns, address] });
  return html`<label class="check"><input type="checkbox" checked=${Boolean(lane.log)} onChange=${() => change({ log: !lane.log })} /> ${t("scale.log")}</label>
    <${Bounds} ...${{ lane, shape, change }} />
    <${Series} entries=${entries} hidden=${lane.hidden ?? []} change=${change} />
    <${Combobox} label=${t("series.add")} placeholder=${t("series.add")} options=${(text) => completions(known, text, trainer)} chosen=${add} />
    ${remove ? html`<label class="stack">${t("section")} <input type="text" defaultValue=${lane.section ?? ""} placeholder=${t("section.none")} onChange=${(event) => change({ section: event.target.value.trim() || undefined })} /></label>` : null}
    <div class="row" role="group" aria-label=${t("export")}>${FILES.map((kind) => html`<button class="quiet" type="button" key=${kind} onClick=${() => save(kind)}>${kind}</button>`)}</div>
    ${remove ? html`<div class="row"><button class="quiet" type="button" onClick=${() => move(-1)}>${t("lane.up")}</button><button class="quiet" type="button" onClick=${() => move(1)}>${t("lane.down")}</button>
      <button class="quiet" type="button" onClick=${() => { close(); remove(); }}>${t("lane.remove")}</button></div>` : null}`;
}
