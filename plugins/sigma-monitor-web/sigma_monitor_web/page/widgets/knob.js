// One live value: a widget for its kind, its address, and the result of its last command.
import { html, useEffect, useState } from "../lib.js";
import { Address } from "./address.js";
import { Fate } from "./fate.js";
import { assign, forget } from "../steer.js";
import { firstValue } from "../series.js";
import { maySteer, useStore } from "../store.js";
import { exact, parsed, tail, title, typed } from "../numbers.js";
import { t } from "../words.js";

const SENT = ["pending", "queued", "refused"]; // do not send the text again on blur

const MOST_TICKS = 6;

const finite = (...values) => values.find((value) => Number.isFinite(value));

// How an entry is steered: {kind, low, high, log}. A rate moves over decades, a bounded value over its range.
export function kind(entry) {
  if (entry.choices?.length) return { kind: "choice" };
  if (entry.type === "flag") return { kind: "switch" };
  if (entry.type !== "number" && entry.type !== "whole") return { kind: "text" };
  const low = finite(entry.low, entry.above), high = finite(entry.high, entry.below);
  const rate = /(^|_)(rate|decay|epsilon|scale)$/.test(tail(entry.address)) && !(high <= 1 && !/learning_rate$/.test(entry.address));
  if (entry.type === "number" && (rate || (entry.above === 0 && high === undefined))) return { kind: "slider", log: true, ...decades(entry, high) };
  if (low !== undefined && high !== undefined && high - low <= 10000) return { kind: "slider", log: false, low, high, most: entry.below === high ? high - (high - low) / 100 : high };
  return { kind: "number" };
}

function decades({ value }, high) {
  const middle = value > 0 ? Math.log10(value) : -2;
  const top = Math.min(high === undefined ? Infinity : Math.log10(high), Math.max(0, Math.ceil(middle + 0.3)));
  return { low: Math.min(-4, Math.floor(middle - 1)), high: top };
}

// Powers of ten, evenly spaced, as many as have room below a slider.
function decadeTicks({ low, high }) {
  const count = Math.floor(high - low) + 1, step = Math.ceil(count / MOST_TICKS);
  return Array.from({ length: Math.ceil(count / step) }, (_, i) => 10 ** (low + i * step));
}

const rounded = (value) => Number(value.toPrecision(2));

function Slider({ entry, form, shown, off, send }) {
  const whole = entry.type === "whole", value = parsed(shown) ?? Number(entry.value) ?? form.low;
  const place = form.log ? Math.log10(value > 0 ? value : 10 ** form.low) : value;
  const real = (at) => (form.log ? rounded(10 ** at) : whole ? Math.round(at) : Number(at.toPrecision(3)));
  const meant = (at) => String(Math.min(form.most ?? Infinity, real(Number(at))));
  const share = Math.min(1, Math.max(0, (place - form.low) / (form.high - form.low)));
  const fill = (element) => element?.style.setProperty("--v", `calc(8px + (100% - 16px) * ${share})`);
  const ticks = form.log ? decadeTicks(form) : [0, 0.25, 0.5, 0.75, 1].map((part) => real(form.low + part * (form.high - form.low)));
  return html`<input ref=${fill} type="range" min=${form.low} max=${form.high} step=${form.log ? 0.01 : whole ? 1 : (form.high - form.low) / 200} value=${place} disabled=${off}
      aria-label=${form.log ? t("slider.log", { name: title(entry.address) }) : title(entry.address)} aria-valuetext=${shown}
      onInput=${(event) => send(meant(event.target.value), false)} onChange=${(event) => send(meant(event.target.value), true)} />
    <div class="ticks" aria-hidden="true">${ticks.map((one) => html`<span key=${one}>${exact(one)}</span>`)}</div>`;
}

// What the person typed as the kernel takes it, or null where it is no such value.
function meant(entry, text) {
  if (entry.choices?.length || entry.type === "text") return text;
  if (entry.type === "flag") return text === "true";
  const number = parsed(text);
  return number === null && entry.type === "any" ? text : number;
}

function Field({ id, entry, form, shown, off, type, send, fate, draft }) {
  if (form.kind === "switch") {
    const on = shown === "true";
    return html`<button id=${id} class="switch" type="button" role="switch" aria-checked=${String(on)} disabled=${off} onClick=${() => send(String(!on), true)}><span></span></button>`;
  }
  if (form.kind === "choice") {
    return html`<select id=${id} disabled=${off} value=${shown} onChange=${(event) => send(event.target.value, true)}>${entry.choices.map((one) => html`<option key=${one} value=${one}>${one}</option>`)}</select>`;
  }
  const numeric = form.kind !== "text";
  const drop = (event) => {
    type(null);
    forget(entry.address);
    event.target.blur();
  };
  return html`<input id=${id} type="text" class=${numeric ? "" : "wide"} inputmode=${numeric ? "decimal" : undefined} autocomplete="off" spellcheck=${false} disabled=${off} value=${shown}
    aria-invalid=${fate?.state === "refused" ? "true" : undefined} onInput=${(event) => type(event.target.value)}
    onKeyDown=${(event) => { if (event.key === "Enter") send(event.target.value, true); if (event.key === "Escape") drop(event); }}
    onBlur=${() => { if (draft !== null && draft.trim() === "" && numeric) type(null); else if (draft !== null && !(SENT.includes(fate?.state) && draft === typed(fate.value))) send(draft, true); }} />`;
}

// `last`: the setting of the journal that its value comes from: {at, by, before}; `force`: the value in force, where it acts later.
// `place`: where it stands, if it stands in more than one.
export function Knob({ entry, last, force, place = "k" }) {
  const fate = useStore((state) => state.fates[entry.address]), steers = useStore(maySteer);
  const [draft, type] = useState(null);
  useEffect(() => { if (fate?.state === "applied") type(null); }, [fate]);
  const value = typed(entry.value), shown = draft ?? (fate?.state === "refused" || fate?.state === "pending" ? typed(fate.value) : value);
  const form = kind(entry), id = `${place}-${entry.address.replace(/\W/g, "-")}`;
  const send = (text, now) => {
    if (!now) return type(text);
    const wanted = meant(entry, text);
    if (text === value && fate?.state !== "refused") return type(null);
    return assign(entry.address, wanted === null ? text : wanted, entry.value, title(entry.address)).then((done) => { if (done) type(null); });
  };
  const seen = fate && fate.state !== "idle" && !(fate.state === "applied" && last && last.at > fate.at) ? fate : last ? { state: "applied", at: last.at, by: last.by, was: last.before } : undefined;
  const back = seen?.state === "applied" && seen.was !== undefined && typed(seen.was) !== value ? seen.was : undefined;
  const state = seen?.state ?? "idle";
  const first = firstValue(entry.address), idle = first === undefined || typed(first) === value ? undefined : t("fate.otherwise", { value: typeof first === "number" ? exact(first) : typed(first) });
  const later = force !== undefined && force !== entry.value ? t("fate.later", { value: exact(force) }) : undefined;
  return html`<div class=${`knob is-${state}`} data-rate=${/learning_rate$/.test(entry.address) ? true : undefined}>
    <div class="knob-top"><label for=${id} title=${entry.doc || undefined}>${title(entry.address)}</label>
      <${Field} ...${{ id, entry, form, shown, type, send, draft, fate: seen }} off=${!steers} />${entry.unit ? html`<span class="note unit">${entry.unit}</span>` : null}</div>
    <${Address} of=${entry.address} />
    ${form.kind === "slider" ? html`<${Slider} ...${{ entry, form, shown, send }} off=${!steers} />` : null}
    <${Fate} fate=${seen?.why ? { ...seen, why: seen.why.replace(`${entry.address}: `, "") } : seen} stays=${state === "refused" ? value : ""} idle=${later ?? idle} later=${later}>${back === undefined ? null : html`<button class="link-b" type="button" disabled=${!steers}
      onClick=${() => send(typed(back), true)}>${t("fate.back", { value: typeof back === "number" ? exact(back) : typed(back) })}</button>`}<//>
  </div>`;
}
