// The activations of a layer for one sample, a row of the data or of "Try it": pictures, or a bar for each value.
import { useMoment } from "../film.js";
import { html, useState } from "../lib.js";
import { useAsked } from "./asking.js";
import { Picture, Plot, Weights, isInk } from "./paint.js";
import { Picker, splitFor } from "./picker.js";
import { word } from "./rows.js";
import { store, useStore } from "../store.js";
import { count, figure, percent, tick } from "../numbers.js";
import { t } from "../words.js";

const LEFT = 40, TALL = 132;
const NAMED = 24; // bars that have room for names
const ROOM = 7; // pixels of a letter

// The sample that is looked at: it stays when another layer or view is opened.
export function useSample() {
  const kept = useStore((state) => state.sample);
  return [kept, (patch) => store.set((state) => ({ sample: { ...state.sample, ...patch } }))];
}

function paint(values, names) {
  const finite = values.filter((one) => one !== null), high = Math.max(0, ...finite), low = Math.min(0, ...finite), span = high - low || 1;
  return (context, width, height, colours) => {
    const step = (width - LEFT) / values.length, foot = height - (names ? 22 : 6), place = (value) => foot - ((value - low) / span) * (foot - 10);
    const thick = Math.max(step > 3 ? 1 : step, Math.min(step * 0.8, 24));
    context.font = `11px ${colours.family}`;
    context.fillStyle = colours["ink-3"];
    context.textAlign = "right";
    for (const value of new Set([high, 0, low])) if (value === 0 || Math.abs(place(value) - place(0)) > 12) context.fillText(tick(Number(value.toPrecision(2))), LEFT - 8, place(value) + 4);
    values.forEach((value, i) => {
      const from = LEFT + i * step + (step - thick) / 2;
      context.fillStyle = value === null ? colours.bad : value < 0 ? colours.s1 : colours.s2;
      if (value === null) context.fillRect(from, 4, thick, foot - 4);
      else context.fillRect(from, Math.min(place(value), place(0)), thick, Math.abs(place(value) - place(0)));
      if (!names) return;
      context.fillStyle = colours["ink-2"];
      context.textAlign = "center";
      context.fillText(names[i].slice(0, Math.max(1, Math.floor(step / ROOM))), from + thick / 2, height - 6);
    });
    context.fillStyle = colours.edge;
    context.fillRect(LEFT, Math.round(place(0)), width - LEFT, 1);
  };
}

function Bars({ found, names }) {
  const { values } = found, most = values.reduce((best, one, i) => (one !== null && (values[best] === null || one > values[best]) ? i : best), 0);
  const label = t("activity.bars", { n: values.length, low: figure(found.low), high: figure(found.high), most: names?.[most] ?? count(most + 1) });
  return html`<div class="bars-of"><${Plot} height=${TALL} paint=${paint(values, names)} of=${found} label=${label} /></div>`;
}

function Made({ layer, found, classes }) {
  const { values, pictures } = found, said = layer.component === "output" && classes.length === values.length ? classes.map(word) : null;
  if (pictures.length) return html`<div class="tiles planes" role="img" aria-label=${t("activity.pictures", { n: count(pictures.length), low: figure(found.low), high: figure(found.high) })}>${pictures.map((one, i) => html`<${Weights} key=${i} picture=${one} />`)}</div>`;
  return html`<${Bars} found=${found} names=${said ?? (values.length <= NAMED ? values.map((_, i) => String(i + 1)) : null)} />`;
}

function About({ found }) {
  const shown = found.pictures.length || found.values.length, all = found.pictures.length ? (found.shape.length === 3 ? found.shape[0] : 1) : found.size;
  return html`<span class="note">${t("activity.range", { low: figure(found.low), high: figure(found.high) })}${found.silent ? ` · ${t("activity.silent", { share: percent(found.silent / found.size, 0) })}` : ""}${found.unusual ? ` · ${t("activity.broken", { n: count(found.unusual) })}` : ""}${shown < all ? ` · ${t("activity.part", { shown: count(shown), all: count(all) })}` : ""}</span>`;
}

// What the sample looks like, as small as it may be.
function Thumbnail({ shown, name }) {
  if (!shown) return null;
  const text = shown.text ?? (name ? "" : t("activity.entered"));
  return html`<span class="thumb">${shown.picture ? html`<${Picture} picture=${shown.picture} ink=${isInk([shown.picture])} label=${t("activity.sample")} />` : text ? html`<q>${text}</q>` : null}${name ? html`<span class="note">${t("data.label", { name })}</span>` : null}</span>`;
}

function Source({ sample, choose, tried, split, splits }) {
  const off = !tried && sample.from !== "tried";
  return html`<div class="row"><div class="seg" role="group" aria-label=${t("activity.sample")}><button type="button" aria-pressed=${String(sample.from === "row")} disabled=${!split} onClick=${() => choose({ from: "row" })}>${t("activity.row")}</button>
      <button type="button" aria-pressed=${String(sample.from === "tried")} disabled=${off} title=${off ? t("activity.try") : undefined} onClick=${() => choose({ from: "tried" })}>${t("activity.tried")}</button></div>
    ${sample.from === "row" && split ? html`<${Picker} split=${split} splits=${splits} at=${sample.row} go=${(row) => choose({ row })} pick=${(one) => choose({ split: one, row: 0 })} />` : null}</div>`;
}

export function Activity({ layer, trainer, pace }) {
  const moment = useMoment(), [sample, choose] = useSample(), tried = useStore((state) => state.tried[trainer]), [name] = useState(() => `h-activity-${layer.name}`);
  const splits = useAsked("splits", { trainer }).result ?? {}, classes = useAsked("classes", { trainer }).result ?? [], split = splitFor(splits, sample.split);
  const row = split ? Math.min(sample.row, splits[split] - 1) : 0, of = sample.from === "tried" ? (tried ? { inputs: tried.inputs } : null) : split ? { split, row } : null;
  const shown = useAsked("rows", of?.split ? { trainer, split, rows: [row] } : null).result?.[0], { result, why } = useAsked("activations", of ? { layer: layer.name, trainer, ...of, ...moment } : null, pace);
  return html`<section class="activity" aria-labelledby=${name}><header class="card-head"><h2 id=${name}>${t("activity")}</h2>${of && result ? html`<${About} found=${result} />` : null}
      <span class="key push"><i class="below"></i>${t("network.below")}<i class="above"></i>${t("network.above")}</span></header>
    <div class="of"><${Source} sample=${sample} choose=${choose} tried=${tried} split=${split} splits=${splits} />${of?.split ? html`<${Thumbnail} shown=${shown} name=${shown ? word(shown.label) : ""} />` : html`<${Thumbnail} shown=${tried} />`}</div>
    ${!of ? html`<p class="empty">${t("activity.try")}</p>` : why ? html`<p class="empty">${t("network.unread", { why })}</p>` : result ? html`<${Made} layer=${layer} found=${result} classes=${classes} />` : html`<p class="empty">${t("loading")}</p>`}</section>`;
}
