// The charts on one time axis: the bar above them, the lanes, the axis, the reading, and how one points, zooms and adds.
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../lib.js";
import { Advice } from "../widgets/advice.js";
import { Combobox } from "../widgets/combobox.js";
import { Icon } from "../widgets/icon.js";
import { pointer, store, useStore } from "../store.js";
import { figure } from "../numbers.js";
import { at } from "../series.js";
import { locale, t } from "../words.js";
import { moment } from "./axis.js";
import { saveCsv, savePng } from "./export.js";
import { Canvas, Lane } from "./lane.js";
import { completions, found } from "./lanes.js";
import { forgetPalette } from "./palette.js";
import { paintRuler } from "./ruler.js";
import { makeScene, reading } from "./scene.js";
import { Table } from "./table.js";
import { Timeline } from "./timeline.js";
import { useLanes } from "./uselanes.js";
import { useShapes } from "./useshapes.js";
import { useGestures } from "./gestures.js";

// A title within a sentence: German nouns stay as they are.
const inText = (text) => (locale().startsWith("en") ? text.charAt(0).toLowerCase() + text.slice(1) : text);

const PHONE = "(max-width: 640px)";

function useWidth() {
  const host = useRef(null), [width, set] = useState(0);
  useLayoutEffect(() => {
    const measure = () => set(host.current.querySelector(".plot")?.clientWidth ?? 0);
    const watch = new ResizeObserver(measure);
    watch.observe(host.current);
    measure();
    return () => watch.disconnect();
  }, []);
  return [host, width];
}

function Bar({ scene, shapes, entries, add, adding }) {
  const axis = useStore((state) => state.axis), smoothing = useStore((state) => state.smoothing), table = useStore((state) => state.table);
  const fill = (element) => element?.style.setProperty("--v", `calc(8px + (100% - 16px) * ${smoothing / 0.99})`);
  return html`<div class="score-bar">
    <div class="seg" role="group" aria-label=${t("axis")}>${["iteration", "epoch", "clock"].map((mode) => html`<button key=${mode} type="button" aria-pressed=${String(mode === axis)}
      onClick=${() => store.set({ axis: mode, range: null })}>${t(`axis.${mode}`)}</button>`)}</div>
    <label class="inline smooth">${t("smoothing")} <input ref=${fill} type="range" id="smoothing" min="0" max="0.99" step="0.01" value=${smoothing}
      onInput=${(event) => store.set({ smoothing: Number(event.target.value) })} /><output>${figure(smoothing, 2)}</output></label>
    <span class="push"></span>
    <button class="quiet" type="button" aria-pressed=${String(table)} onClick=${() => store.set({ table: !table })}>${t("table")}</button>
    <button class="quiet" type="button" onClick=${() => saveCsv(scene, entries)}>CSV</button>
    <button class="quiet" type="button" id="save-png" onClick=${() => savePng(scene, shapes)}>PNG</button>
    <button class="quiet" type="button" id="add-chart" title=${t("chart.add")} aria-expanded=${String(adding)} onClick=${add}><span>${t("chart.add")}</span><${Icon} name="plus" /></button>
  </div>`;
}

function Add({ add, close, reset }) {
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

// What the crosshair reads, in one place; without it, how to read.
function Reading({ scene, shapes }) {
  const place = useStore((state) => state.place, pointer), range = useStore((state) => state.range);
  const whole = html`<button class="quiet" type="button" disabled=${!range} onClick=${() => store.set({ range: null })}>${t("zoom.whole")}</button>`;
  if (place === null) return html`<div class="reading"><p class="note">${t("reading.hint")}</p>${whole}</div>`;
  const seen = new Set(); // an address may stand in several lanes
  const values = shapes.flatMap((shape) => shape.items.filter((item) => item.line && !item.hidden && item.colour !== "ghost").map((item) => {
    if (seen.has(item.entry.address)) return null;
    seen.add(item.entry.address);
    const read = at(item.line, item.values, place);
    if (!read) return null;
    const name = shape.items.length > 1 || item.kind !== "steps" ? `${item.name} ${inText(shape.title)}` : inText(shape.title);
    return html`<span key=${item.entry.address} class=${`c-${item.colour}`}>${name} <b>${reading(read.value, shape.share, item.kind)}${shape.share ? " %" : ""}</b></span>`;
  }));
  return html`<div class="reading"><p class="read"><span>${moment(scene.axis, place)}</span>${values}</p>${whole}</div>`;
}

export function Board() {
  const state = useStore((all) => all), [host, width] = useWidth(), [adding, show] = useState(false);
  const { lanes, change, remove, move, add, reset } = useLanes();
  const small = matchMedia(PHONE).matches;
  useMemo(forgetPalette, [state.theme, matchMedia("(prefers-color-scheme: dark)").matches, matchMedia("(forced-colors: active)").matches]);
  const scene = makeScene(state, lanes, width, small);
  const shapes = useShapes(lanes, scene);
  const gestures = useGestures(host, scene);
  const ready = width > 0 && state.status;
  return html`<div class="score card" id="score">
    <${Bar} scene=${scene} shapes=${shapes} entries=${scene.all.flat()} adding=${adding} add=${() => show(!adding)} />
    ${adding ? html`<${Add} add=${add} reset=${reset} close=${() => { show(false); document.querySelector("#add-chart")?.focus(); }} />` : null}
    <${Advice} />
    <div class="lanes" ref=${host} tabindex="0" role="group" aria-label=${t("charts.keys")} ...${gestures}>
      <${Timeline} scene=${scene} />
      ${ready ? lanes.map((lane, i) => html`<${Lane} key=${lane.id} lane=${lane} shape=${shapes[i]} entries=${scene.all[i]} scene=${scene}
        change=${(patch) => change(lane.id, patch)} remove=${() => remove(lane.id)} move=${(way) => move(lane.id, way)} />`) : [274, 194, 76].map((tall) => html`<${Waiting} key=${tall} tall=${tall} />`)}
      <div class="lane axis" aria-hidden="true"><div class="head"></div><div class="plot"><${Canvas} height=${32} label="" paint=${(canvas) => paintRuler(canvas, scene)} /></div></div>
      <span class="zoom" hidden></span>
    </div>
    <${Reading} scene=${scene} shapes=${shapes} />
    ${state.table ? html`<${Table} scene=${scene} shapes=${shapes} />` : null}
  </div>`;
}

function Waiting({ tall }) {
  const put = (element) => element?.style.setProperty("height", `${tall}px`);
  return html`<div class="lane waiting"><div class="head"><span class="bar"></span></div><div class="plot" ref=${put}><p class="empty">${t("loading")}</p></div></div>`;
}
