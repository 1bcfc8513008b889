// Media under the curves, on their axis: a row for each name, with thumbnails at their moments.
import { html, useEffect, useRef, useState } from "../lib.js";
import { Canvas, marks } from "../charts/lane.js";
import { disc, prepare, rule } from "../charts/paint.js";
import { palette } from "../charts/palette.js";
import { Pins } from "../charts/reading.js";
import { paintRuler } from "../charts/ruler.js";
import { useAsked } from "../insight/asking.js";
import { focused } from "../stage.js";
import { useStore } from "../store.js";
import { count } from "../numbers.js";
import { t } from "../words.js";
import { arrange, newestAt } from "./arrange.js";
import { about, Small } from "./medium.js";
import { useMedium } from "./values.js";
import { Viewer } from "./viewer.js";

const KINDS = ["picture", "text", "sound", "table", "histogram"]; // in the order of their rows
const SIZES = { picture: [72, 72], text: [144, 72], sound: [72, 36], table: [72, 72], histogram: [88, 48] }; // width and height of thumbnails
const TOP = 18, BELOW = 10; // pixels above thumbnails, for the moments, and below
const FIRST = 6; // rows that are shown before a person asks for all
const RULER = 28, OFTEN = 2000, CALM = 150; // pixels; milliseconds between two looks at what is new, and until a zoom has come to rest

// What changes with media, but no more often than each `OFTEN`.
function useNews() {
  const version = JSON.stringify(useStore((state) => state.media)), [seen, see] = useState(version), last = useRef(0);
  useEffect(() => {
    if (version === seen) return undefined;
    const soon = setTimeout(() => { last.current = performance.now(); see(version); }, Math.max(0, last.current + OFTEN - performance.now()));
    return () => clearTimeout(soon);
  }, [version, seen]);
  return seen;
}

// A value that has not changed for a while.
function useRested(value) {
  const [rested, rest] = useState(value);
  useEffect(() => {
    const soon = setTimeout(() => rest(value), CALM);
    return () => clearTimeout(soon);
  }, [value]);
  return rested;
}

function paintRow(pen, { scene, all, placed, tall }) {
  const colours = palette(), { frame } = scene;
  pen.save();
  pen.beginPath();
  pen.rect(frame.left - 8, 0, frame.right - frame.left + 16, tall);
  pen.clip();
  marks(pen, scene, tall, colours);
  rule(pen, frame.left, 6.5, frame.right, 6.5, colours.line);
  for (const { entry, x } of all) rule(pen, Math.round(x) + 0.5, 4, Math.round(x) + 0.5, 9, entry.is_left ? colours.ghost : colours["ink-3"]);
  for (const { entry, x } of placed) disc(pen, x, 6.5, 3, entry.is_left ? colours.ghost : colours.accent, colours.surface);
  pen.restore();
}

// A thumbnail; the line from its moment shows where it stands if it was moved aside.
function Thumb({ name, place: { entry, left }, kind, open, looked }) {
  const { value, why } = useMedium(kind === "text" || kind === "sound" ? null : entry), [width, height] = SIZES[kind];
  const put = (element) => { for (const [style, size] of [["left", left], ["top", TOP], ["width", width], ["height", height]]) element?.style.setProperty(style, `${Math.round(size)}px`); };
  return html`<li ref=${put}><button type="button" class=${`still ${kind} ${entry.is_left ? "was-left" : ""} ${looked ? "looked" : ""}`} aria-current=${looked ? "true" : undefined} title=${about("", entry)} onClick=${() => open(entry)}>
    <span class="sr">${about(name, entry)}</span>${why ? html`<span class="words">${why}</span>` : html`<${Small} entry=${entry} value=${value} />`}</button></li>`;
}

// The left and right arrows go from thumbnail to thumbnail.
function walk(event) {
  const way = { ArrowLeft: -1, ArrowRight: 1 }[event.key], all = [...event.currentTarget.querySelectorAll("button")], at = all.indexOf(focused());
  if (!way || at < 0) return;
  event.preventDefault();
  event.stopPropagation();
  all[Math.min(all.length - 1, Math.max(0, at + way))].focus();
}

function Row({ name, own, scene, ruled, open }) {
  const { picked } = scene.state, looked = picked && newestAt(own.entries, picked.iteration);
  const { kind } = own.entries.at(-1), tall = TOP + SIZES[kind][1] + BELOW, { all, placed } = arrange(own.entries, scene, SIZES[kind][0], looked), id = `m-${name}`;
  const says = t("media.says", { name, n: count(own.total), flags: count(scene.flags.length) });
  return html`<section class="lane media" aria-labelledby=${id}>
    <div class="head"><h2 id=${id} title=${name}>${name}</h2><p class="note">${t(`media.${kind}`, { n: count(own.total) })}</p></div>
    <div class="plot"><${Canvas} height=${tall} label=${says} paint=${(canvas) => paintRow(prepare(canvas, scene.frame.width, tall), { scene, all, placed, tall })} />
      <ol class="moments" onKeyDown=${walk}>${placed.map((place) => html`<${Thumb} key=${`${place.entry.branch}.${place.entry.iteration}`} ...${{ name, place, kind, open, looked: place.entry === looked }} />`)}</ol>
      ${ruled ? html`<div aria-hidden="true"><${Canvas} height=${RULER} label="" paint=${(canvas) => paintRuler(prepare(canvas, scene.frame.width, RULER), scene)} /></div>` : null}
      <${Pins} scene=${scene} /><span class="cross" aria-hidden="true"></span></div>
  </section>`;
}

const order = ([a, own], [b, other]) => KINDS.indexOf(own.entries.at(-1).kind) - KINDS.indexOf(other.entries.at(-1).kind) || a.localeCompare(b, "en", { numeric: true });

export function MediaLanes({ scene, ruled }) {
  const trainer = useStore((state) => state.trainer), there = useStore((state) => state.media !== null), news = useNews();
  const span = useRested(useStore((state) => (state.range && ["iteration", "epoch"].includes(state.axis) ? JSON.stringify(state.range) : "")));
  const { result } = useAsked("media", there ? { trainer, ...(span ? { span: JSON.parse(span) } : {}) } : null, news);
  const [shown, show] = useState(null), [whole, open] = useState(false), back = useRef(null);
  const rows = there ? Object.entries(result ?? {}).sort(order) : [], seen = whole ? rows : rows.slice(0, FIRST);
  const view = (name, entry) => {
    if (entry && !shown) back.current = focused();
    if (!entry) back.current?.focus();
    show(entry ? { name, entry } : null);
  };
  if (!rows.length && !shown) return null;
  return html`<div class="media-lanes" role="group" aria-label=${t("media")}>
    ${seen.map(([name, own], i) => html`<${Row} key=${name} ...${{ name, own, scene, ruled: ruled && i === seen.length - 1 }} open=${(entry) => view(name, entry)} />`)}
    ${rows.length > FIRST ? html`<p class="more"><button class="quiet" type="button" aria-expanded=${String(whole)} onClick=${() => open(!whole)}>${t(whole ? "media.fewer" : "media.all", { n: count(rows.length) })}</button></p>` : null}
    ${shown ? html`<${Viewer} name=${shown.name} entry=${shown.entry} known=${result?.[shown.name]?.entries ?? []} show=${(entry) => view(shown.name, entry)} />` : null}</div>`;
}
