// One chart: its head with the number and the trend, the plot, the labels that switch its series.
import { html, useLayoutEffect, useRef } from "../lib.js";
import { Menu } from "../widgets/menu.js";
import { Combobox } from "../widgets/combobox.js";
import { useStore } from "../store.js";
import { count } from "../numbers.js";
import { t } from "../words.js";
import { completions } from "./lanes.js";
import { band, curve, diamond, disc, flag, grid, points, prepare, rule, steps, visible, write } from "./paint.js";
import { palette } from "./palette.js";
import { paintSoon, watched } from "./queue.js";

const BANDS = 3; // more series than these are drawn without their raw values

export function paintLane(canvas, { shape, scene }, ratio) {
  const { frame, sx, small } = scene, { sy, tall, items } = shape, colours = palette();
  const pen = prepare(canvas, frame.width, tall, ratio);
  grid(pen, shape.ticks, sy, frame, colours);
  pen.save();
  pen.beginPath();
  pen.rect(frame.left - 8, 0, frame.right - frame.left + 16, tall);
  pen.clip();
  marks(pen, scene, tall, colours);
  for (const { at } of shape.references) rule(pen, frame.left, Math.round(at) + 0.5, frame.right, Math.round(at) + 0.5, colours["ink-3"], { dash: [7, 4] });
  for (const item of items) if (!item.hidden) abandoned(pen, item, scene, sy, colours);
  for (const item of [...items].sort((a, b) => (b.colour === "ghost") - (a.colour === "ghost"))) if (!item.hidden && item.line) series(pen, item, scene, sy, colours, items.length <= BANDS);
  pen.restore();
  for (const { text, y } of shape.references) write(pen, text, frame.left + 8, y, { colour: colours["ink-2"], paper: colours.surface, family: colours.family });
  if (!small) nameBranches(pen, items, scene, sy, colours);
}

function marks(pen, scene, tall, colours) {
  const { axis, sx } = scene;
  for (const one of scene.flags) {
    const x = sx(axis.place(one.iteration, one.second));
    flag(pen, x, tall, colours, { left: one.left });
  }
  for (const one of scene.kept) if (one.saved) diamond(pen, sx(axis.place(one.iteration, one.second)), tall - 5, 4.5, colours.surface, colours["ink-2"]);
}

function abandoned(pen, item, { axis, sx, abandoned: ends }, sy, colours) {
  for (const line of item.left) {
    const span = visible(line, axis.low, axis.high), colour = colours.ghost;
    const end = ends.find((one) => one.number === line.branch)?.end ?? 0;
    if (item.kind === "steps") steps(pen, line, line.value, span, axis.place(end, axis.clock ? line.second[line.length - 1] : undefined), sx, sy, { colour, width: 1.5 });
    else curve(pen, line, (item.kind === "dense" && line.smooth) || line.value, span, sx, sy, { colour, width: 1.5 });
    if (item.kind === "sparse") points(pen, line, line.value, span, sx, sy, { colour, paper: colours.surface, radius: 3 });
  }
}

function series(pen, item, { axis, sx }, sy, colours, alone) {
  const { line, values, kind } = item, colour = colours[item.colour], span = visible(line, axis.low, axis.high);
  if (kind === "steps") return steps(pen, line, values, span, axis.present, sx, sy, { colour, width: 2 });
  if (kind === "dense" && alone) {
    const crowded = (span[1] - span[0]) / (sx(line.x[span[1] - 1]) - sx(line.x[span[0]]) + 1) > 1.5; // then the band holds all that a line could show
    band(pen, line, span, sx, sy, { colour, alpha: crowded ? 0.28 : 0.14 });
    if (!crowded) curve(pen, line, line.value, span, sx, sy, { colour, width: 1, alpha: 0.28 });
  }
  curve(pen, line, values, span, sx, sy, { colour, width: 2 });
  if (kind === "sparse" && span[1] - span[0] < 90) points(pen, line, values, span, sx, sy, { colour, paper: colours.surface });
  if (item.best) disc(pen, sx(line.x[item.best.at]), sy(item.best.value), 7, null, colour);
  return undefined;
}

// The names of abandoned branches, at the end of their curves.
function nameBranches(pen, items, { sx, axis, frame, abandoned: ends }, sy, colours) {
  const item = items.find((one) => !one.hidden && one.left.length);
  for (const line of item?.left ?? []) {
    const end = ends.find((one) => one.number === line.branch)?.end ?? 0, last = line.length - 1;
    const x = sx(item.kind === "steps" && !axis.clock ? end : line.x[last]) + 9, y = sy((item.kind === "dense" && line.smooth ? line.smooth : line.value)[last]) + 4;
    if (x > frame.left && x < frame.right - 56 && Number.isFinite(y)) {
      write(pen, t("branch", { n: line.branch }), x, y, { colour: colours["ink-3"], paper: colours.surface, family: colours.family });
    }
  }
}

// A canvas that is painted anew after every change, at most once a frame.
export function Canvas({ paint, height, label }) {
  const canvas = useRef(null);
  useLayoutEffect(() => watched(canvas.current), []);
  useLayoutEffect(() => paintSoon(canvas.current, paint));
  return html`<canvas ref=${(element) => { canvas.current = element; element?.style.setProperty("height", `${height}px`); }} role="img" aria-label=${label}></canvas>`;
}

function Trend({ trend }) {
  if (!trend) return null;
  const sign = trend.flat ? "→" : trend.up ? "↑" : "↓";
  return html`<span class="trend"><span aria-hidden="true">${sign} </span><span class="sr">${t(trend.flat ? "trend.flat" : trend.up ? "trend.up" : "trend.down")} </span><b>${trend.size}</b> ${t("trend.epoch", { n: count(trend.epochs) })}</span>`;
}

// The label at the end of a line: its name and value, or since when a setting holds.
export function labelText({ name, text, since }) {
  if (since === null) return `${name} ${text}`;
  return since ? t("since", { at: count(since) }) : t("since.start");
}

function Labels({ labels, toggle, scene }) {
  const put = (y) => (element) => { if (element) element.style.setProperty("--y", `${Math.round(y)}px`); };
  return html`<ul class="labels">${labels.map((one) => html`<li key=${one.address} ref=${put(one.y)}>
    <button type="button" class=${`label c-${one.colour}`} aria-pressed=${String(!one.hidden)} title=${one.address} onClick=${() => toggle(one.address)}>
      ${one.since === null ? html`<span>${one.name}</span> <b>${one.text}</b>` : html`<b>${labelText(one)}</b>`}${one.best?.newest && !scene.small ? html`<small>${t("best")}</small>` : null}</button></li>`)}</ul>`;
}

function Options({ lane, entries, change, remove, close, move }) {
  const known = useStore((state) => state.entries), trainer = useStore((state) => state.trainer);
  const hidden = lane.hidden ?? [];
  const add = (address) => change({ patterns: [...lane.patterns, address] });
  const toggle = (address) => change({ hidden: hidden.includes(address) ? hidden.filter((one) => one !== address) : [...hidden, address] });
  return html`<label class="check"><input type="checkbox" checked=${Boolean(lane.log)} onChange=${() => change({ log: !lane.log })} /> ${t("scale.log")}</label>
    <fieldset><legend>${t("series")}</legend><div class="scroll">${entries.map((entry) => html`<label class="check" key=${entry.address}>
      <input type="checkbox" checked=${!hidden.includes(entry.address)} onChange=${() => toggle(entry.address)} /> <code>${entry.address}</code></label>`)}</div></fieldset>
    <${Combobox} label=${t("series.add")} placeholder=${t("series.add")} options=${(text) => completions(known, text, trainer)} chosen=${add} />
    <div class="row"><button class="quiet" type="button" onClick=${() => move(-1)}>${t("lane.up")}</button><button class="quiet" type="button" onClick=${() => move(1)}>${t("lane.down")}</button>
      <button class="quiet" type="button" onClick=${() => { close(); remove(); }}>${t("lane.remove")}</button></div>`;
}

const told = (shape, scene) => {
  const parts = shape.items.filter((item) => item.line && !item.hidden).map((item) => t("lane.says", { name: item.name, value: [item.now.text, item.what].filter(Boolean).join(", "), n: count(item.line.length) }));
  const known = shape.baselines.map((one) => t("baseline.says", { name: one.name, value: one.text }));
  return `${shape.title}: ${[...parts, ...known].join("; ") || t("lane.none")}. ${scene.flags.length ? t("lane.flags", { n: scene.flags.length }) : ""}`;
};

export function Lane({ lane, shape, entries, scene, change, remove, move }) {
  const hidden = lane.hidden ?? [];
  const toggle = (address) => change({ hidden: hidden.includes(address) ? hidden.filter((one) => one !== address) : [...hidden, address] });
  const empty = shape.items.every((item) => !item.line?.length);
  const id = `l-${lane.id}`;
  return html`<section class=${`lane ${shape.tall < 100 ? "low" : ""}`} aria-labelledby=${id}>
    <div class="head"><h2 id=${id}>${shape.title}</h2>
      <p class=${`big ${shape.tall < 100 ? "small" : ""}`}>${shape.number}${shape.share && shape.number !== "–" ? html`<small>%</small>` : null}</p>
      ${shape.tall < 100 ? null : html`<p class="note"><span>${shape.whose}</span><${Trend} trend=${shape.trend} /></p>`}
      ${shape.tall < 100 || !shape.baselines.length ? null : html`<dl class="note baselines" aria-label=${t("baselines")}>${shape.baselines.map(({ name, text }) => html`<div key=${name}><dt>${name}</dt><dd><b>${text}</b></dd></div>`)}</dl>`}
      <${Menu} label=${t("lane.options", { name: shape.title })} class="lane-menu">${(close) => html`<${Options} ...${{ lane, entries, change, remove, close, move }} />`}<//>
    </div>
    <div class="plot" data-plot><${Canvas} height=${shape.tall} label=${told(shape, scene)} paint=${(canvas) => paintLane(canvas, { shape, scene })} />
      <${Labels} labels=${empty ? [] : shape.labels} toggle=${toggle} scene=${scene} /><span class="cross" aria-hidden="true"></span>
      ${empty ? html`<p class="empty">${t(entries.length || lane.id === "loss" ? "lane.waiting" : "lane.nothing", { pattern: lane.patterns.join(", ") })}</p>` : null}</div>
  </section>`;
}
