// Reading the charts: the values at the pointer beside it, those of all series in a table that sorts, and moments that stay pinned.
import { html, useState } from "../lib.js";
import { pointer, store, useStore } from "../store.js";
import { at } from "../series.js";
import { t } from "../words.js";
import { moment } from "./axis.js";
import { curve, visible } from "./paint.js";
import { reading, readings } from "./shape.js";
import { SvgPen } from "./svg.js";
import { Gap, useWindow } from "./window.js";

const NEAR = 10; // series in the reading beside the pointer: those whose lines are nearest
const ROW = 28, ROOM = 252; // pixels of a row, and of the rows that are seen
const MOST_PINS = 8;

const letter = (index) => String.fromCharCode(65 + index);
const text = (shape, item, value) => `${reading(value, shape.share, item.kind)}${shape.share ? " %" : ""}`;

// The series of a chart at the pointer, highest first, with the one whose line is nearest; no more than can be read.
export function nearby(shape, place, y) {
  const found = readings(shape, place).map((one) => ({ ...one, y: shape.sy(one.value) })).filter((one) => Number.isFinite(one.y));
  const far = (one) => Math.abs(one.y - (y ?? 0));
  const near = [...found].sort((one, other) => far(one) - far(other)).slice(0, NEAR);
  return { rows: near.sort((one, other) => one.y - other.y), nearest: near.reduce((best, one) => (best && far(best) <= far(one) ? best : one), null), others: found.length - near.length };
}

// A dot on each line that is read; a grey line that is pointed at is drawn in full.
function Dots({ rows, nearest, shape, scene, place }) {
  const { frame, sx, axis } = scene, grey = nearest?.item.colour === "ghost" ? nearest.item : null, pen = new SvgPen(frame.width, shape.tall);
  if (grey) curve(pen, grey.line, grey.values, visible(grey.line, axis.low, axis.high), sx, shape.sy, { colour: "", width: 2 });
  return html`<svg class="hover" width=${frame.width} height=${shape.tall} aria-hidden="true">${grey ? html`<path d=${pen.path} />` : null}
    ${rows.filter(({ item }) => item.colour !== "ghost" || item === grey).map(({ item, y }) => html`<circle key=${item.entry.address} class=${item === grey ? "" : `c-${item.colour}`} cx=${sx(place)} cy=${y} r="3.5" />`)}</svg>`;
}

function Tip({ rows, nearest, others, shape, scene, place }) {
  const x = scene.sx(place), right = x > (scene.frame.left + scene.frame.right) / 2;
  const put = (element) => {
    element?.style.setProperty("left", right ? "auto" : `${Math.round(x + 14)}px`);
    element?.style.setProperty("right", right ? `${Math.round(scene.frame.width - x + 14)}px` : "auto");
  };
  const smooth = ({ kind, own }) => kind === "dense" && own.factor > 0, dense = rows.some(({ item }) => smooth(item));
  return html`<div class="tip" ref=${put} aria-hidden="true"><p>${moment(scene.axis, place)}</p><table>
    ${dense ? html`<thead><tr><td></td><td>${t("number.smoothed")}</td><td>${t("measured")}</td></tr></thead>` : null}
    <tbody>${rows.map(({ item, value, measured }) => html`<tr key=${item.entry.address} class=${`c-${item.colour} ${item === nearest?.item ? "near" : ""}`}><th>${item.name}</th><td>${text(shape, item, value)}</td>${dense ? html`<td>${smooth(item) ? text(shape, item, measured) : ""}</td>` : null}</tr>`)}</tbody></table>
    ${others ? html`<p>${t("and.more", { n: others })}</p>` : null}</div>`;
}

// What a chart shows while it is pointed at.
export function Hover({ lane, shape, scene }) {
  const at = useStore((state) => (state.lane === lane.id ? state : null), pointer);
  if (!at || at.place === null) return null;
  const near = { ...nearby(shape, at.place, at.y), shape, scene, place: at.place };
  return near.rows.length ? html`<${Dots} ...${near} /><${Tip} ...${near} />` : null;
}

// -- pinned moments ---------------------------------------------------------------------------------------------------
// Pin a place on the axis, or take away the pin that stands within `slack` of it.
export function pin(axis, place, slack) {
  const placeOf = (one) => axis.place(one.iteration, one.second);
  store.set(({ pins }) => {
    const left = pins.filter((one) => Math.abs(placeOf(one) - place) > slack);
    return { pins: left.length < pins.length ? left : [...pins, { iteration: axis.iterationAt(place), second: axis.clock ? place : undefined }].slice(-MOST_PINS) };
  });
}

export function Pins({ scene }) {
  const pins = useStore((state) => state.pins), film = useStore((state) => state.film), { axis, sx, frame } = scene;
  const letters = pins.map((one, i) => [letter(i), one]), played = film === null ? [] : [["▸", { iteration: film }]];
  return [...letters, ...played].map(([name, one]) => {
    const x = sx(axis.place(one.iteration, one.second));
    const put = (element) => element?.style.setProperty("transform", `translateX(${Math.round(x)}px)`);
    return x < frame.left - 1 || x > frame.right + 1 ? null : html`<span class="pin" key=${name} ref=${put} aria-hidden="true">${name}</span>`;
  });
}

// -- all values -------------------------------------------------------------------------------------------------------
// The series of all charts, each once, with their values at some places: sorted by name (`by` < 0), or by the values at one of them.
export function sortedRows(shapes, places, { by, down }) {
  const rows = new Map();
  for (const shape of shapes) {
    for (const item of shape.items) if (item.line && !item.hidden && !rows.has(item.entry.address)) {
      rows.set(item.entry.address, { shape, item, address: item.entry.address, values: places.map((place) => at(item.line, item.values, place)?.value ?? NaN) });
    }
  }
  const sign = down ? -1 : 1, known = (value) => (Number.isFinite(value) ? 0 : 1);
  const order = (one, other) => {
    if (by < 0) return sign * one.address.localeCompare(other.address, "en", { numeric: true });
    const [a, b] = [one.values[by], other.values[by]];
    return known(a) - known(b) || (known(a) ? 0 : sign * (a - b));
  };
  return [...rows.values()].sort(order);
}

function Values({ scene, shapes, place, pins }) {
  const [sort, by] = useState({ by: -1, down: false });
  const places = [place ?? scene.axis.high, ...pins.map((one) => scene.axis.place(one.iteration, one.second))];
  const rows = sortedRows(shapes, places, sort), { from, to, onScroll } = useWindow(rows.length, ROW, ROOM);
  const head = (name, at, title) => html`<th scope="col" key=${at} class=${at < 0 ? "" : "r"} aria-sort=${sort.by === at ? (sort.down ? "descending" : "ascending") : undefined}>
    <button class="quiet" type="button" title=${title} onClick=${() => by({ by: at, down: sort.by === at ? !sort.down : at >= 0 })}>${name}<span aria-hidden="true">${sort.by === at ? (sort.down ? " ↓" : " ↑") : ""}</span></button></th>`;
  return html`<div class="table-wrap values" tabindex="0" role="group" aria-label=${t("values")} onScroll=${onScroll}><table class="list figures" aria-rowcount=${rows.length + 1}>
    <thead><tr>${head(t("series"), -1)}${head(t(place === null ? "now" : "values.here"), 0)}${pins.map((_, i) => head(letter(i), i + 1, moment(scene.axis, places[i + 1])))}</tr></thead>
    <tbody><${Gap} rows=${from} height=${ROW} columns=${places.length + 1} />${rows.slice(from, to).map(({ shape, item, address, values }) => html`<tr key=${address}><th scope="row"><span class=${`swatch c-${item.colour}`} aria-hidden="true"></span> <code>${address}</code></th>
      ${values.map((value, i) => html`<td class="r" key=${i}>${Number.isFinite(value) ? text(shape, item, value) : ""}</td>`)}</tr>`)}<${Gap} rows=${rows.length - to} height=${ROW} columns=${places.length + 1} /></tbody></table></div>`;
}

// Where the pointer is, what stays pinned, and the values of all series on demand.
export function Reading({ scene, shapes }) {
  const place = useStore((state) => state.place, pointer), { range, pins, values } = useStore((state) => state), { axis } = scene;
  return html`<div class="reading"><p class=${place === null ? "note" : "read"}>${place === null ? t("reading.hint") : moment(axis, place)}</p>
      <span class="push"></span>
      <button class="quiet" type="button" disabled=${place === null} onClick=${() => pin(axis, place, 0)}>${t("pin")}</button>
      <button class="quiet" type="button" disabled=${!pins.length} onClick=${() => store.set({ pins: [] })}>${t("pin.clear")}</button>
      <button class="quiet" type="button" disabled=${!range} onClick=${() => store.set({ range: null })}>${t("zoom.whole")}</button>
      <button class="quiet" type="button" aria-pressed=${String(values)} onClick=${() => store.set({ values: !values })}>${t("values")}</button></div>
    ${pins.length ? html`<ul class="pins">${pins.map((one, i) => html`<li key=${i}><b>${letter(i)}</b> ${moment(axis, axis.place(one.iteration, one.second))}
      <button class="quiet mini" type="button" aria-label=${t("pin.remove", { name: letter(i) })} onClick=${() => store.set({ pins: pins.filter((other) => other !== one) })}>×</button></li>`)}</ul>` : null}
    ${values ? html`<${Values} ...${{ scene, shapes, place, pins }} />` : null}`;
}
