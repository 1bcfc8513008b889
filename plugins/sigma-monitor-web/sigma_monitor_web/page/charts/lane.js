// One chart: its head with the number and the trend, the plot, the labels that switch its series.
import { html, useLayoutEffect, useRef } from "../lib.js";
import { Menu } from "../widgets/menu.js";
import { useStore } from "../store.js";
import { count } from "../numbers.js";
import { t } from "../words.js";
import { band, curve, diamond, disc, flag, grid, points, prepare, rule, steps, visible, write } from "./paint.js";
import { Options } from "./options.js";
import { DASHES, palette } from "./palette.js";
import { paintSoon, watched } from "./queue.js";
import { Hover, Pins } from "./reading.js";
import { paintRuler } from "./ruler.js";

const BANDS = 3; // more series than these are drawn without their raw values
const CORNERS = 40_000; // of the grey curves of one chart: with more of them, each has fewer columns
const TOLD = 6; // series that a chart tells those who cannot see it

export function paintLane(pen, { shape, scene }) {
  const { frame, sx, small } = scene, { sy, tall, items } = shape, colours = palette();
  grid(pen, shape.ticks, sy, frame, colours);
  pen.save();
  pen.beginPath();
  pen.rect(frame.left - 8, 0, frame.right - frame.left + 16, tall);
  pen.clip();
  shade(pen, scene, tall, colours);
  marks(pen, scene, tall, colours);
  for (const { at } of shape.references) rule(pen, frame.left, Math.round(at) + 0.5, frame.right, Math.round(at) + 0.5, colours["ink-3"], { dash: [7, 4] });
  const shown = items.filter((item) => !item.hidden), grey = shown.filter((item) => item.line && item.colour === "ghost");
  const step = Math.max(1, Math.ceil((grey.length * (frame.right - frame.left)) / CORNERS));
  for (const item of shown) abandoned(pen, item, scene, sy, colours);
  for (const item of grey) series(pen, item, scene, sy, colours, { step });
  for (const item of shown) if (item.line && item.colour !== "ghost") series(pen, item, scene, sy, colours, { alone: items.length <= BANDS });
  pen.restore();
  for (const { text, y } of shape.references) write(pen, text, frame.left + 8, y, { colour: colours["ink-2"], paper: colours.surface, family: colours.family });
  if (!small) nameBranches(pen, items, scene, sy, colours);
}

// The pauses on the axis of times, as grey parts between two edges.
export function shade(pen, { axis, sx, frame }, tall, colours) {
  for (const [from, to] of axis.wall?.pauses ?? []) {
    const left = Math.max(sx(from), frame.left), right = Math.min(sx(to), frame.right);
    if (right - left < 1) continue;
    pen.save();
    Object.assign(pen, { fillStyle: colours.line, globalAlpha: 0.6 });
    pen.fillRect(left, 0, right - left, tall);
    pen.restore();
    for (const x of [left, right]) rule(pen, x, 0, x, tall, colours.edge, { dash: [1, 3] });
  }
}

export function marks(pen, scene, tall, colours) {
  const { axis, sx } = scene;
  for (const one of scene.flags) {
    const x = sx(axis.place(one.iteration, one.second, one));
    flag(pen, x, tall, colours, { left: one.left });
  }
  for (const one of scene.kept) if (one.saved) diamond(pen, sx(axis.place(one.iteration, one.second)), tall - 5, 4.5, colours.surface, colours["ink-2"]);
}

function abandoned(pen, item, { axis, sx, abandoned: ends }, sy, colours) {
  for (const line of item.left) {
    const span = visible(line, axis.low, axis.high), colour = colours.ghost;
    const end = ends.find((one) => one.number === line.branch)?.end ?? 0;
    if (item.kind === "steps") steps(pen, line, line.value, span, axis.clock ? line.x[line.length - 1] : axis.place(end), sx, sy, { colour, width: 1.5 });
    else curve(pen, line, line.smooth, span, sx, sy, { colour, width: 1.5 });
    if (item.kind === "sparse") points(pen, line, line.value, span, sx, sy, { colour, paper: colours.surface, radius: 3 });
  }
}

function series(pen, item, { axis, sx }, sy, colours, { step = 1, alone = false }) {
  const { line, values, kind } = item, colour = colours[item.colour], dash = colours.dash(item.colour), span = visible(line, axis.low, axis.high);
  if (kind === "steps") return steps(pen, line, values, span, axis.present, sx, sy, { colour, width: 2, dash });
  if (kind === "dense" && alone) {
    const crowded = (span[1] - span[0]) / (sx(line.x[span[1] - 1]) - sx(line.x[span[0]]) + 1) > 1.5; // then the band holds all that a line could show
    band(pen, line, span, sx, sy, { colour, alpha: crowded ? 0.28 : 0.14 });
    if (!crowded) curve(pen, line, line.value, span, sx, sy, { colour, width: 1, alpha: 0.28 });
  }
  const grey = item.colour === "ghost";
  curve(pen, line, values, span, sx, sy, { colour, width: grey ? 1.2 : 2, dash, step });
  if (kind === "sparse" && span[1] - span[0] < 90 && !grey) points(pen, line, values, span, sx, sy, { colour, paper: colours.surface });
  if (item.best && !grey) disc(pen, sx(line.x[item.best.at]), sy(item.best.value), 7, null, colour);
  return undefined;
}

// The names of abandoned branches, at the end of their curves.
function nameBranches(pen, items, { sx, axis, frame, abandoned: ends }, sy, colours) {
  const item = items.find((one) => !one.hidden && one.left.length);
  for (const line of item?.left ?? []) {
    const end = ends.find((one) => one.number === line.branch)?.end ?? 0, last = line.length - 1;
    const x = sx(item.kind === "steps" && !axis.clock ? end : line.x[last]) + 9, y = sy(line.smooth[last]) + 4;
    if (x > frame.left && x < frame.right - 56 && Number.isFinite(y)) {
      write(pen, t("branch", { n: line.branch }), x, y, { colour: colours["ink-3"], paper: colours.surface, family: colours.family });
    }
  }
}

// A canvas that is painted anew after every change, and in other colours, at most once a frame.
export function Canvas({ paint, height, label }) {
  const canvas = useRef(null);
  useStore((state) => state.looks);
  useLayoutEffect(() => watched(canvas.current), []);
  useLayoutEffect(() => paintSoon(canvas.current, paint));
  return html`<canvas ref=${(element) => { canvas.current = element; element?.style.setProperty("height", `${height}px`); }} role="img" aria-label=${label}></canvas>`;
}

function Trend({ trend }) {
  if (!trend) return null;
  const sign = trend.flat ? "→" : trend.up ? "↑" : "↓";
  return html`<span class="trend"><span aria-hidden="true">${sign} </span><span class="sr">${t(trend.flat ? "trend.flat" : trend.up ? "trend.up" : "trend.down")} </span><b>${trend.size}</b> ${t("trend.epoch", { n: count(trend.epochs) })}</span>`;
}

// The dashes of a series, which its label shows where colours cannot be told apart.
const Sample = ({ colour }) => html`<svg class="dashes" viewBox="0 0 28 4" aria-hidden="true"><path d="M0 2h28" stroke="currentColor" stroke-width="2" stroke-dasharray=${DASHES[colour]?.join(" ")} /></svg>`;

function Labels({ labels, toggle, small }) {
  const put = (y) => (element) => { if (element) element.style.setProperty("--y", `${Math.round(y)}px`); };
  return html`<ul class=${`labels ${small ? "below" : ""}`}>${labels.map((one) => html`<li key=${one.address} ref=${put(one.y)}>
    <button type="button" class=${`label c-${one.colour}`} aria-pressed=${String(!one.hidden)} aria-label=${one.lines.length > 1 ? `${one.lines.join("")} ${one.more}` : undefined} title=${one.address} onClick=${() => toggle(one.address)}>
      <${Sample} colour=${one.colour} />${one.lines.map((line, i) => html`<span class="line" key=${i}>${i < one.lines.length - 1 ? line : html`${line.slice(0, line.length - one.value.length)}<b>${one.value}</b>`}</span>`)}${one.more ? html`<small>${one.more}</small>` : null}</button></li>`)}</ul>`;
}

const told = (shape, scene) => {
  const seen = shape.items.filter((item) => item.line && !item.hidden), first = seen.filter((item) => item.colour !== "ghost").slice(0, TOLD);
  const parts = first.map((item) => t("lane.says", { name: item.name, value: [item.now.text, item.what].filter(Boolean).join(", "), n: count(item.line.length) }));
  const known = shape.baselines.map((one) => t("baseline.says", { name: one.name, value: one.text }));
  const more = seen.length > first.length ? [t("and.more", { n: count(seen.length - first.length) })] : [];
  return `${shape.title}: ${[...parts, ...more, ...known].join("; ") || t("lane.none")}. ${scene.flags.length ? t("lane.flags", { n: scene.flags.length }) : ""}`;
};

function Head({ lane, shape, id, options }) {
  const low = shape.tall < 100;
  return html`<div class="head"><h2 id=${id}>${shape.title}</h2>
    <p class=${`big ${low ? "small" : ""}`}>${shape.number}${shape.share && shape.number !== "–" ? html`<small>%</small>` : null}</p>
    ${low ? null : html`<p class="note"><span>${shape.whose}</span><${Trend} trend=${shape.trend} /></p>`}
    ${shape.others ? html`<p class="note">${t("series.others", { n: count(shape.others) })}</p>` : null}
    ${lane.bounds ? html`<p class="note">${t("bounds.set")}</p>` : null}
    ${low || !shape.baselines.length ? null : html`<dl class="note baselines" aria-label=${t("baselines")}>${shape.baselines.map(({ name, text }) => html`<div key=${name}><dt>${name}</dt><dd><b>${text}</b></dd></div>`)}</dl>`}
    <${Menu} label=${t("lane.options", { name: shape.title })} class="lane-menu">${(close) => html`<${Options} ...${{ ...options, lane, shape, close }} />`}<//></div>`;
}

// `ruled`: whether the chart has its own ticks of the time axis below it.
export function Lane({ lane, shape, entries, scene, change, remove, move, save, ruled }) {
  const hidden = lane.hidden ?? [], id = `l-${lane.id}`, empty = shape.items.every((item) => !item.line?.length);
  const toggle = (address) => change({ hidden: hidden.includes(address) ? hidden.filter((one) => one !== address) : [...hidden, address] });
  const paint = (canvas) => paintLane(prepare(canvas, scene.frame.width, shape.tall), { shape, scene });
  return html`<section class=${`lane ${shape.tall < 100 ? "low" : ""}`} aria-labelledby=${id}>
    <${Head} ...${{ lane, shape, id }} options=${{ entries, change, remove, move, save }} />
    <div class="plot" data-plot=${lane.id}><${Canvas} height=${shape.tall} label=${told(shape, scene)} paint=${paint} />
      ${ruled ? html`<div aria-hidden="true"><${Canvas} height=${28} label="" paint=${(canvas) => paintRuler(prepare(canvas, scene.frame.width, 28), scene)} /></div>` : null}
      <${Labels} labels=${empty ? [] : shape.labels} toggle=${toggle} small=${scene.small} /><${Pins} scene=${scene} /><span class="cross" aria-hidden="true"></span><${Hover} ...${{ lane, shape, scene }} />
      ${empty ? html`<p class="empty">${t(entries.length || lane.id === "loss" ? "lane.waiting" : "lane.nothing", { pattern: lane.patterns.join(", ") })}</p>` : null}</div>
  </section>`;
}
