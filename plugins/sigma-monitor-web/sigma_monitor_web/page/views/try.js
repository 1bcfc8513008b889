// Try it: enter a sample, and show its prediction during training.
import { html, useEffect, useState } from "../lib.js";
import { useAsked } from "../insight/asking.js";
import { Answer, Past, useAnswer } from "../insight/answer.js";
import { Gallery } from "../insight/gallery.js";
import { Pad, extent } from "../insight/pad.js";
import { Picture, bytes } from "../insight/paint.js";
import { Picker, splitFor } from "../insight/picker.js";
import { word } from "../insight/rows.js";
import { request } from "../session.js";
import { titled } from "../insight/table.js";
import { ofTrainer, store, useStore } from "../store.js";
import { count, exact } from "../numbers.js";
import { t } from "../words.js";

const SAMPLED = 24, USUAL = 20 / 28; // rows that are looked at; what MNIST's digits fill
const MOST = 60; // sliders
const STEPS = 200; // of a slider

// Numbers row by row as nested lists of a shape.
function nested(flat, [first, ...rest]) {
  if (!rest.length) return flat.slice(0, first);
  const size = flat.length / first;
  return Array.from({ length: first }, (_, i) => nested(flat.slice(i * size, (i + 1) * size), rest));
}

// A picture of the data as its values, channels first.
function valuesOf({ channels, pixels }, { low, high }) {
  const flat = [...bytes(pixels)].map((one) => low + (one / 255) * (high - low)), area = flat.length / channels;
  return Array.from({ length: flat.length }, (_, i) => flat[(i % area) * channels + Math.floor(i / area)]);
}

const toPixels = (shares) => btoa(String.fromCharCode(...shares.map((share) => Math.round(share * 255))));

// Values of a section as a picture.
function pictureOf(flat, { shape, low, high }) {
  const [height, width] = shape.slice(-2), shares = flat.slice(0, height * width).map((value) => Math.min(1, Math.max(0, (value - low) / (high - low || 1))));
  return { width, height, channels: 1, pixels: toPixels(shares) };
}

function Seen({ flat, section }) {
  const [height, width] = section.shape.slice(-2);
  return html`<div class="sees"><span class="note">${t("try.sees", { width, height })}</span><${Picture} picture=${pictureOf(flat, section)} ink=${true} label=${t("try.sees", { width, height })} /></div>`;
}

// Which share of the longer side the pictures of the data fill, in the middle of some of them.
function useFill(trainer, splits) {
  const [split] = Object.keys(splits), wanted = split ? Array.from({ length: Math.min(SAMPLED, splits[split]) }, (_, i) => i) : [];
  const { result } = useAsked("rows", wanted.length ? { trainer, split, rows: wanted } : null), pictures = (result ?? []).map((one) => one.picture).filter((one) => one?.channels === 1);
  const found = pictures.map(filled).filter((share) => share > 0).sort((a, b) => a - b);
  return found[Math.floor(found.length / 2)] ?? USUAL;
}

function filled({ width, height, pixels }) {
  const box = extent([...bytes(pixels)].map((one) => (one > 25 ? 1 : 0)), width);
  return box ? Math.max(box.right - box.left, box.bottom - box.top) / Math.max(width, height) : 0;
}

// The keyboard's way: a row of the data instead of a drawing.
function Take({ trainer, splits, take }) {
  const split = splitFor(splits, ""), [at, go] = useState(null), [label, say] = useState("");
  if (!split) return html`<span class="note">${t("try.nodata")}</span>`;
  const pick = (row) => {
    go(row);
    request("rows", { trainer, split, rows: [row] }).then(([found]) => { if (found) { take(found); say(word(found.label)); } }, () => {});
  };
  return html`<div class="take"><span class="note">${t("try.take", { split })}</span><div class="row"><${Picker} split=${split} splits=${splits} at=${at} go=${pick} />${at === null ? null : html`<span class="note">${t("data.label", { name: label })}</span>`}</div></div>`;
}

function Drawing({ section, fill, flat, set, trainer, splits, first }) {
  const [blank, wipe] = useState(0), [drawn, mark] = useState(false), sides = section.shape.slice(-2), planes = section.shape.length === 3 ? section.shape[0] : 1;
  const heard = (shares) => { mark(true); set(shares && Array.from({ length: shares.length * planes }, (_, i) => section.low + shares[i % shares.length] * (section.high - section.low))); };
  const clear = () => { wipe(blank + 1); mark(false); set(null); };
  const take = (row) => { wipe(blank + 1); mark(false); set(valuesOf(row.picture, section)); };
  const taken = flat && !drawn ? pictureOf(flat, section) : null;
  return html`<div class="drawing"><div class="pad-in"><${Pad} form=${{ fill, sides }} blank=${blank} hear=${heard} />${taken ? html`<div class="taken"><${Picture} picture=${taken} ink=${true} /></div>` : null}${flat ? null : html`<p class="hint">${t("try.hint")}</p>`}<button type="button" class="quiet" disabled=${!flat} onClick=${clear}>${t("try.clear")}</button></div>
    <div class="under">${first ? html`<${Take} trainer=${trainer} splits=${splits} take=${take} />` : null}${flat ? html`<${Seen} flat=${flat} section=${section} />` : null}</div></div>`;
}

function Slider({ column, at, value, set }) {
  const step = (column.high - column.low) / STEPS || 0.01, share = ((value - column.low) / (column.high - column.low || 1)) * 100, name = titled(column.name === String(at) ? null : { [at]: column.name }, at);
  return html`<li class="feature"><label for=${`feature-${at}`}>${name}</label><input id=${`feature-${at}`} type="range" min=${column.low} max=${column.high} step=${step} value=${value} ref=${(one) => one?.style.setProperty("--v", `${share}%`)} onInput=${(event) => set(Number(event.target.value))} />
    <output for=${`feature-${at}`}>${exact(Number(value.toPrecision(4)))}</output></li>`;
}

function Features({ section, flat, set, trainer, splits, first }) {
  return html`<div class="drawing"><ul class="features">${section.columns.slice(0, MOST).map((column, i) => html`<${Slider} key=${i} column=${column} at=${i} value=${flat[i]} set=${(value) => set(flat.map((one, k) => (k === i ? value : one)))} />`)}</ul>
    ${section.columns.length > MOST ? html`<p class="note">${t("try.more", { n: count(section.columns.length - MOST) })}</p>` : null}
    <div class="under">${first ? html`<${Take} trainer=${trainer} splits=${splits} take=${(row) => set(flat.map((one, i) => [row.table?.[section.section]].flat(Infinity)[i] ?? one))} />` : null}<button type="button" class="quiet push" onClick=${() => set(middle(section))}>${t("try.middle")}</button></div></div>`;
}

function Words({ flat, set, trainer, splits, first }) {
  return html`<div class="drawing"><label class="stack">${t("try.text")}<textarea rows="6" value=${flat ?? ""} onInput=${(event) => set(event.target.value || null)}></textarea></label>
    <div class="under">${first ? html`<${Take} trainer=${trainer} splits=${splits} take=${(row) => set(row.text)} />` : null}</div></div>`;
}

const middle = (section) => section.columns.map((column) => column.middle);
const START = { picture: () => null, text: () => null, table: middle };
const WIDGETS = { picture: Drawing, text: Words, table: Features };

// What was entered stays when another view is opened; layers can be seen at work on it.
function keep(trainer, sections, own, sample) {
  const drawn = sections.find((one) => one.kind === "picture"), text = sections.find((one) => one.kind === "text");
  const entered = sample && { own, inputs: sample, picture: drawn && pictureOf(own[drawn.section], drawn), text: text && own[text.section] };
  store.set((state) => ({ tried: { ...state.tried, [trainer]: entered } }));
}

function Trial({ inputs, trainer, splits, classes, fill }) {
  const [own, set] = useState(() => store.get().tried[trainer]?.own ?? Object.fromEntries(inputs.inputs.map((one) => [one.section, START[one.kind](one)])));
  const full = inputs.inputs.every(({ section }) => own[section] !== null);
  const sample = full ? Object.fromEntries(inputs.inputs.map(({ section, shape, kind }) => [section, kind === "text" ? own[section] : nested(own[section], shape)])) : null;
  useEffect(() => keep(trainer, inputs.inputs, own, sample), [own]);
  const { answer, past, why } = useAnswer(trainer, sample), outputs = Object.entries(answer?.outputs ?? {}), pictured = inputs.inputs.some((one) => one.kind === "picture");
  const several = outputs.length > 1;
  return html`<section class=${`card trial ${inputs.inputs.every((one) => one.kind === "table") ? "sliders" : ""}`} aria-labelledby="h-trial"><div class="card-head"><h2 id="h-trial">${t(pictured ? "try.draw" : inputs.inputs.some((one) => one.kind === "text") ? "try.write" : "try.set")}</h2></div>
      <div class="trial-in"><div class="widgets">${inputs.inputs.map((section, i) => html`<div key=${section.section}>${inputs.inputs.length > 1 ? html`<h3>${section.section}</h3>` : null}<${WIDGETS[section.kind]} section=${section} fill=${fill} flat=${own[section.section]} first=${i === 0} trainer=${trainer} splits=${splits} set=${(flat) => set((old) => ({ ...old, [section.section]: flat }))} /></div>`)}</div>
      <div class="answers">${why ? html`<p class="empty">${t("try.unanswered", { why })}</p>` : outputs.length ? outputs.map(([name, output]) => html`<${Answer} key=${name} name=${name} output=${output} several=${several} />`) : html`<${Empty} classes=${classes} />`}</div></div></section>
    <div class="side"><${Past} past=${past} name=${outputs[0]?.[0]} /><${Gallery} picture=${pictured} trainer=${trainer} /></div>`;
}

// The bars as they stand before anything is drawn: their places are kept.
function Empty({ classes }) {
  const shown = classes.length <= 20 ? classes : [];
  return html`<div class="answer"><p class="note">${t("try.reads")}</p><p class="huge none"><b>–</b><span>${t("try.nothing")}</span></p><ol class="bars" aria-hidden="true">${shown.map((name) => html`<li key=${word(name)}><b>${word(name)}</b><span class="track"></span><span class="share"></span></li>`)}</ol></div>`;
}

export function Try() {
  const trainer = useStore((state) => state.trainer), ready = useStore((state) => ofTrainer(state) !== null), state = useStore((one) => one.status?.status), [tries, again] = useState(0);
  const { result: inputs, why } = useAsked("inputs", ready ? { trainer } : null, tries), splits = useAsked("splits", ready ? { trainer } : null, tries).result ?? {}, classes = useAsked("classes", ready ? { trainer } : null, tries).result ?? [];
  const fill = useFill(trainer, splits);
  useEffect(() => { if (!inputs) again(tries + 1); }, [state]);
  if (!inputs) return html`<section class="card"><p class="empty">${why ? t("try.unread", { why }) : t("loading")}</p></section>`;
  return html`<${Trial} key=${trainer} inputs=${inputs} trainer=${trainer} splits=${splits} classes=${classes} fill=${fill} />`;
}
