// The bar above the charts: axis, smoothing, table, how charts are laid out, files, and another chart.
import { html, useEffect, useMemo, useRef, useState } from "../lib.js";
import { Combobox } from "../widgets/combobox.js";
import { Icon } from "../widgets/icon.js";
import { Menu } from "../widgets/menu.js";
import { store, useStore } from "../store.js";
import { clockTime, figure } from "../numbers.js";
import { t } from "../words.js";
import { MODES, modeOf } from "./axis.js";
import { completions, found } from "./lanes.js";
import { FILES } from "./options.js";
import { makeWall } from "./wall.js";

const COLUMNS = [1, 2, 3];

function Display() {
  const state = useStore((all) => all), { columns, tight, logAxis } = state, dated = modeOf(state) === "time";
  const check = (name, on, text) => html`<label class="check"><input type="checkbox" checked=${on} onChange=${() => store.set({ [name]: !on })} /> ${text}</label>`;
  return html`<fieldset><legend>${t("columns")}</legend><div class="seg" role="group" aria-label=${t("columns")}>${COLUMNS.map((n) => html`<button key=${n} type="button" aria-pressed=${String(n === columns)}
      onClick=${() => store.set({ columns: n })}>${n}</button>`)}</div></fieldset>
    ${check("tight", tight, t("tight"))}${check("logAxis", logAxis, t("axis.log"))}${dated ? html`<p class="note">${t("axis.log.time")}</p>` : null}`;
}

// What the times of a run do not say, while they are the axis.
function Times() {
  const { axis, periods } = useStore((state) => state), wall = useMemo(() => makeWall(periods), [periods]);
  if (axis !== "time" || !periods || (wall && !wall.guessed)) return null;
  const says = wall ? t("axis.time.guessed", { time: clockTime(wall.origin + wall.guessed, 0) }) : t("axis.time.none");
  return html`<p class="note pad" role="status">${says}</p>`;
}

export function Bar({ add, adding, save }) {
  const axis = useStore((state) => state.axis), smoothing = useStore((state) => state.smoothing), table = useStore((state) => state.table);
  const fill = (element) => element?.style.setProperty("--v", `calc(8px + (100% - 16px) * ${smoothing / 0.99})`);
  return html`<div class="score-bar">
    <div class="seg" role="group" aria-label=${t("axis")}>${MODES.map((mode) => html`<button key=${mode} type="button" aria-pressed=${String(mode === axis)}
      onClick=${() => store.set({ axis: mode, range: null })}>${t(`axis.${mode}`)}</button>`)}</div>
    <label class="inline smooth">${t("smoothing")} <input ref=${fill} type="range" id="smoothing" min="0" max="0.99" step="0.01" value=${smoothing}
      onInput=${(event) => store.set({ smoothing: Number(event.target.value) })} /><output>${figure(smoothing, 2)}</output></label>
    <span class="push"></span>
    <button class="quiet" type="button" aria-pressed=${String(table)} onClick=${() => store.set({ table: !table })}>${t("table")}</button>
    <${Menu} label=${t("display")} text=${t("display")} icon="down">${() => html`<${Display} />`}<//>
    <${Menu} label=${t("export")} text=${t("export")} icon="down" class="files">${(close) => FILES.map((kind) => html`<button class="quiet" type="button" key=${kind} onClick=${() => { save(kind); close(); }}>${kind}</button>`)}<//>
    <button class="quiet" type="button" id="add-chart" title=${t("chart.add")} aria-expanded=${String(adding)} onClick=${add}><span>${t("chart.add")}</span><${Icon} name="plus" /></button>
  </div><${Times} />`;
}

export function Add({ add, close, reset }) {
  const entries = useStore((state) => state.entries), trainer = useStore((state) => state.trainer);
  const [log, set] = useState(false), [why, say] = useState("");
  const card = useRef(null);
  useEffect(() => { card.current.querySelector("input")?.focus(); }, []);
  const take = (text) => {
    if (!found(entries, text, trainer).length) return say(t("chart.none", { text }));
    add(text, log);
    return close();
  };
  return html`<div class="add" ref=${card} role="group" aria-label=${t("chart.add")} onKeyDown=${(event) => { if (event.key === "Escape") close(); }}>
    <${Combobox} label=${t("chart.address")} placeholder=${t("chart.address")} class="wide" options=${(text) => completions(entries, text, trainer)} chosen=${take} />
    <label class="check"><input type="checkbox" checked=${log} onChange=${() => set(!log)} /> ${t("scale.log")}</label>
    <span class="note" role="status">${why || t("chart.hint")}</span>
    <button class="quiet push" type="button" onClick=${() => { reset(); close(); }}>${t("chart.reset")}</button><button class="quiet" type="button" onClick=${close}>${t("close")}</button></div>`;
}
