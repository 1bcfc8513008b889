// The map of the data: rows on a plane, by their inputs or what a layer makes of them, moving while the network trains.
import { useMoment } from "../film.js";
import { html, useEffect, useMemo, useState } from "../lib.js";
import { Actions, useShown } from "./acting.js";
import { useAsked, useEdited, usePace } from "./asking.js";
import { Canvas } from "./canvas.js";
import { hues, ramp, unpacked } from "./cloud.js";
import { Parts } from "./parts.js";
import { Tiles, about, word } from "./rows.js";
import { Table } from "./table.js";
import { announce } from "../announce.js";
import { SERIES, palette } from "../charts/palette.js";
import { abandon } from "../session.js";
import { useSpots, useStore } from "../store.js";
import { count, figure, percent } from "../numbers.js";
import { t } from "../words.js";

const OFTEN = 3000, SELDOM = 10_000; // milliseconds between two maps at least, and between two with losses
const USUAL = { map_of: "", map_method: "pca", map_colour: "class", map_split: "", map_count: 2000 }; // in the address of the page
const COUNTS = [500, 1000, 2000, 5000, 10_000], METHODS = ["pca", "umap"], COLOURS = ["class", "loss", "right", "split"], WAYS = ["new", "add", "remove"];
const STEPS = 12, LISTED = 60, NAMED = 40; // colours of a scale; rows that are listed; classes of a legend
const NOTHING = { excluded: [], labels: {} };

// How many numbers the network reads, if it reads numbers: a plane has two.
const numbersOf = (form) => (form ? form.inputs.reduce((sum, { shape }) => sum + shape.reduce((a, b) => a * b, 1), 0) : 0);

const subject = (of) => (of === "plane" || of === "inputs" ? t(`map.of.${of}`) : of);

function Choice({ label, value, options, choose, name = (one) => one }) {
  return html`<label class="inline">${label}<select value=${value} onChange=${(event) => choose(event.target.value)}>${options.map((one) => html`<option key=${one} value=${one}>${name(one)}</option>`)}</select></label>`;
}

function Controls({ setup, change, layers, plane, splits }) {
  const subjects = [...(plane ? ["plane"] : []), "inputs", ...layers];
  return html`<${Choice} label=${t("map.of")} value=${setup.of} options=${subjects} name=${subject} choose=${(of) => change({ of })} />
    ${setup.of === "plane" ? null : html`<${Choice} label=${t("map.method")} value=${setup.method} options=${METHODS} name=${(one) => one.toUpperCase()} choose=${(method) => change({ method })} />`}
    <${Choice} label=${t("map.colour")} value=${setup.colour} options=${COLOURS} name=${(one) => t(`map.colour.${one}`)} choose=${(colour) => change({ colour })} />
    <${Choice} label=${t("data.split")} value=${setup.split} options=${["", ...splits]} name=${(one) => one || t("data.class.all")} choose=${(split) => change({ split })} />
    <${Choice} label=${t("map.count")} value=${String(setup.count)} options=${COUNTS.map(String)} name=${(one) => count(Number(one))} choose=${(one) => change({ count: Number(one) })} />`;
}

// -- colours ----------------------------------------------------------------------------------------------------------
// Points by colour: {id, name, colour, places}. Those of a scale are in steps, excluded ones apart, behind all others.
function grouped(cloud, colour) {
  const colours = palette(), all = cloud.row.length, out = { id: "out", name: t("data.excluded"), colour: colours.ghost, places: [] };
  const fill = (groups, of) => {
    for (let i = 0; i < all; i++) (cloud.excluded[i] ? out : groups[of(i)] ?? out).places.push(i);
    return [...(out.places.length ? [out] : []), ...groups.filter(({ places }) => places.length)];
  };
  const named = (names, shown) => names.map((name, k) => ({ id: `${k}`, name: word(name), colour: shown[k], places: [] }));
  if (colour === "split") return fill(named(cloud.splits, hues(cloud.splits.length, colours, SERIES)), (i) => cloud.split[i]);
  if (colour === "right" && cloud.right) return fill([{ id: "unknown", name: t("map.unknown"), colour: colours.ghost, places: [] }, ...named([t("map.wrong"), t("map.right")], [colours.s2, colours.s1])], (i) => cloud.right[i] + 1);
  if (colour === "class" && cloud.classes.length) return fill([...named(cloud.classes, hues(cloud.classes.length, colours, SERIES)), { id: "unknown", name: t("map.unknown"), colour: colours.ghost, places: [] }], (i) => (cloud.label[i] < 0 ? cloud.classes.length : cloud.label[i]));
  const values = colour === "loss" || colour === "right" ? cloud.loss : cloud.label;
  return values ? fill(...scaled(values, colours)) : fill([{ id: "all", name: "", colour: colours.s1, places: [] }], () => 0);
}

// Steps of a scale; the highest twentieth has the last colour, so that a few great losses do not hide all others.
function scaled(values, colours) {
  const sorted = Float32Array.from(values).filter(Number.isFinite).sort(), low = sorted[0] ?? 0, high = sorted[Math.floor(sorted.length * 0.95)] ?? 1, span = high - low || 1;
  const groups = ramp(colours.s1, colours.s2, STEPS).map((colour, k) => ({ id: `${k}`, name: k === 0 ? figure(low) : k === STEPS - 1 ? `≥ ${figure(high)}` : "", colour, places: [] }));
  return [groups, (i) => (Number.isNaN(values[i]) ? -1 : Math.min(STEPS - 1, Math.max(0, Math.floor(((values[i] - low) / span) * (STEPS - 1)))))];
}

function Ways({ way, go }) {
  return html`<div class="seg" role="group" aria-label=${t("map.way")}>${WAYS.map((one) => html`<button key=${one} type="button" aria-pressed=${String(one === way)} onClick=${() => go(one)}>${t(`map.way.${one}`)}</button>`)}</div>`;
}

function Legend({ groups, chosen, pick }) {
  const place = (box) => box?.querySelectorAll("i").forEach((one, k) => one.style.setProperty("background", groups[k].colour));
  return html`<ul class="map-legend" ref=${place}>${groups.slice(0, NAMED).map((one, k) => html`<li key=${k}><button type="button" class="mini quiet" aria-pressed=${String(chosen === one.id)} onClick=${() => pick(chosen === one.id ? null : one.id)} aria-label=${t("map.group", { name: one.name || t("map.between"), n: count(one.places.length) })}><i></i>${one.name}</button></li>`)}</ul>`;
}

// -- chosen rows ------------------------------------------------------------------------------------------------------
function Chosen({ trainer, split, rows, classes, names, edited }) {
  const [chosen, choose] = useState(new Set(rows)), listed = rows.slice(0, LISTED), shown = useShown(trainer, split, listed);
  const own = (useAsked("edits", { trainer }, edited).result ?? {})[split] ?? NOTHING, edits = { excluded: new Set(own.excluded), labels: own.labels };
  useEffect(() => choose(new Set(rows)), [rows.join()]);
  const told = listed.map((row) => ({ row, label: shown[row]?.label })), drawn = Object.values(shown).some((one) => one.picture) || !Object.keys(shown).length;
  return html`<section class="card rows-card" aria-label=${t("map.rows", { split })}><div class="card-head"><h2>${t("map.rows", { split })}</h2><span class="note">${t("data.of", { n: count(listed.length), all: count(rows.length) })}</span></div>
    <${drawn ? Tiles : Table} rows=${told} shown=${shown} names=${names} classes=${classes} edits=${edits} chosen=${chosen} choose=${choose} />
    <div class="acts-bar"><${Actions} chosen=${chosen} clear=${() => choose(new Set())} split=${split} classes=${classes} edits=${edits} place=${`map ${split}`} /></div></section>`;
}

// What is said of the point under the pointer.
function said(cloud, i) {
  const label = cloud.classes.length ? (cloud.classes[cloud.label[i]] ?? "") : cloud.label[i];
  const row = { row: cloud.row[i], label, ...(cloud.loss && !Number.isNaN(cloud.loss[i]) ? { loss: cloud.loss[i] } : {}) };
  return `${cloud.splits[cloud.split[i]]}: ${about(row, { excluded: Boolean(cloud.excluded[i]) })}`;
}

function noteOf(cloud) {
  const rows = t("map.rows.of", { n: count(cloud.row.length), all: count(cloud.total) }), [first, second] = cloud.shares;
  const how = cloud.of === "plane" ? cloud.columns.join(" × ") : cloud.method === "pca" ? t("map.shares", { first: percent(first, 0), second: percent(second, 0) }) : "UMAP";
  return `${how} · ${rows} · ${t("map.at", { at: count(cloud.at) })}`;
}

const keyOf = (cloud, i) => `${cloud.splits[cloud.split[i]]} ${cloud.row[i]}`;

// What a person has chosen to see, from the address of the page; a plane of two inputs is the usual map of a network that has them.
function useSetup(plane) {
  const [own, change] = useSpots("data", USUAL), setup = Object.fromEntries(Object.entries(own).map(([name, value]) => [name.replace("map_", ""), value]));
  const put = (patch) => change({ ...own, ...Object.fromEntries(Object.entries(patch).map(([name, value]) => [`map_${name}`, value])) });
  return [{ ...setup, of: setup.of || (plane ? "plane" : "inputs") }, put];
}

// Chosen rows by their split and number, so that they stay the same ones on another map; their places on this one, and how to choose others.
function useChosen(cloud) {
  const [keys, choose] = useState(new Set()), places = useMemo(() => (cloud ? [...cloud.row.keys()].filter((i) => keys.has(keyOf(cloud, i))) : []), [cloud, keys]);
  const take = (others, way) => {
    const named = others.map((i) => keyOf(cloud, i)), gone = new Set(way === "remove" ? named : []);
    const all = new Set(way === "new" ? named : [...keys, ...named].filter((key) => !gone.has(key)));
    choose(all);
    announce(t("data.chosen", { n: count(all.size) }));
  };
  return [places, take];
}

export function DataMap({ trainer }) {
  const { result: form, why: lacks } = useAsked("inputs", { trainer }), plane = numbersOf(form) === 2 && form.inputs.every((one) => one.kind !== "text"), [setup, change] = useSetup(plane), edited = useEdited();
  const layers = (useAsked("network", { trainer }).result ?? []).filter((layer) => !("targets" in layer.settings) && layer.sources.length).map((layer) => layer.name);
  const splits = Object.keys(useAsked("splits", { trainer }, edited).result ?? {}), classes = useAsked("classes", { trainer }).result ?? [], names = useAsked("columns", { trainer }).result ?? {};
  const embeds = setup.method === "umap" && setup.of !== "plane", moment = useMoment(), [embedded, embedAt] = useState({}), follows = embeds ? embedded : moment; // what takes minutes follows no film
  const losses = setup.colour === "loss" || setup.colour === "right", asks = { trainer, of: setup.of, method: setup.method, count: setup.count, losses, ...(setup.split ? { split: setup.split } : {}), ...follows };
  const soon = usePace(OFTEN), later = usePace(SELDOM), [again, refresh] = useState(0);
  const moves = embeds ? again : "at" in moment ? "" : losses ? later : layers.includes(setup.of) ? soon : ""; // what takes minutes is computed again when a person asks
  const { result, why, busy } = useAsked("map", form ? asks : null, `${moves} ${edited}`, embeds), surface = useAsked("surface", plane && setup.of === "plane" ? { trainer, ...moment } : null, "at" in moment ? "" : soon).result;
  const cloud = useMemo(() => (result ? unpacked(result) : null), [result]), theme = useStore((state) => state.looks), waits = cloud && (cloud.of !== setup.of || (cloud.of !== "plane" && cloud.method !== setup.method));
  const [chosen, take] = useChosen(cloud), [way, go] = useState("new"), [bright, pick] = useState(null), [under, point] = useState(-1);
  useEffect(() => pick(null), [setup.colour]);
  const groups = useMemo(() => (cloud ? grouped(cloud, setup.colour) : []), [cloud, setup.colour, theme]);
  const looks = useMemo(() => ({ groups: bright === null ? groups : faded(groups, bright), chosen, surface: surface ? hues(Math.max(2, surface.classes), palette(), SERIES) : [] }), [groups, bright, chosen, surface, theme]);
  const parts = cloud ? cloud.splits.map((split, k) => [split, chosen.filter((i) => cloud.split[i] === k).map((i) => cloud.row[i])]).filter(([, rows]) => rows.length) : [];
  return html`<div class="side"><section class="card map-card" aria-labelledby="h-map"><div class="card-head"><${Parts} /><h2 id="h-map" class="sr">${t("map")}</h2><${Controls} setup=${setup} change=${change} layers=${layers} plane=${plane} splits=${splits} />
      ${embeds ? html`<button class="quiet mini" type="button" onClick=${() => { embedAt(moment); refresh(again + 1); }}>${t("data.again")}</button>` : null}
      ${embeds && busy ? html`<button class="quiet mini" type="button" id="map-cancel" onClick=${() => abandon("map", t("map.cancelled"))}>${t("map.cancel")}</button>` : null}</div>
      ${embeds && embedded.at !== moment.at ? html`<p class="note pad" id="map-moment">${t(embedded.at === undefined ? "map.umap.now" : "map.umap.then", { at: count(embedded.at) })}</p>` : null}
      ${(why && !cloud) || lacks ? html`<p class="empty">${t("map.none", { why: why || lacks })}</p>` : !cloud ? html`<p class="empty">${t("map.waits")}</p>` : html`<${Canvas} cloud=${cloud} surface=${surface} looks=${looks} way=${way} choose=${take} point=${point} label=${t("map.label", { n: count(cloud.row.length), of: subject(cloud.of), chosen: count(chosen.length) })} />
        <div class="map-foot"><${Legend} groups=${groups} chosen=${bright} pick=${pick} /><${Ways} way=${way} go=${go} /></div><p class="note pad">${why ? `${setup.method.toUpperCase()}: ${why}` : waits ? t("map.waits") : under >= 0 && under < cloud.row.length ? said(cloud, under) : noteOf(cloud)}</p><p class="note pad" id="map-how">${t("map.how")}</p>`}</section></div>
    <div class="side">${parts.length ? parts.map(([split, rows]) => html`<${Chosen} key=${split} trainer=${trainer} split=${split} rows=${rows} classes=${classes} names=${names} edited=${edited} />`) : html`<section class="card" aria-label=${t("map.chosen")}><p class="empty">${t("map.choose")}</p></section>`}</div>`;
}

// A group in front of all others, which fade.
function faded(groups, id) {
  const { ghost } = palette();
  return [...groups.filter((one) => one.id !== id).map((one) => ({ ...one, colour: ghost })), ...groups.filter((one) => one.id === id)];
}
