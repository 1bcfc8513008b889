// What the network answers: in big, in words, in bars, and how that changed as training went on.
import { frames, useMoment } from "../film.js";
import { html, useEffect, useRef, useState } from "../lib.js";
import { request } from "../session.js";
import { ofTrainer, store } from "../store.js";
import { useOnline, usePace } from "./asking.js";
import { Plot } from "./paint.js";
import { word } from "./rows.js";
import { count, figure, percent, tick } from "../numbers.js";
import { t } from "../words.js";

const EVERY = 250; // milliseconds between two questions at least
const REMEMBERED = 240; // answers to the same sample
const SHOWN = 20; // bars
const NOTHING = { answer: null, past: [], key: "", why: "" };

// The answer to a sample, asked anew when the sample or the network has changed, one question at a time.
export function useAnswer(trainer, sample) {
  const moment = useMoment(), pace = usePace(EVERY), online = useOnline(), [found, set] = useState(NOTHING), key = sample ? JSON.stringify(sample) : "";
  const now = useRef({ busy: false, last: -EVERY }).current;
  now.key = key;
  useEffect(() => {
    if (!key) set(NOTHING);
    if (!online || !key) return undefined;
    const ask = () => {
      if (now.busy) { waiting = setTimeout(ask, EVERY / 5); return; }
      const { at } = moment, frame = at === undefined ? 0 : 1;
      Object.assign(now, { busy: true, last: performance.now() });
      frames.waiting += frame;
      request("predict", { trainer, inputs: sample, ...moment }).then(
        (outputs) => { if (now.key === key) set((old) => ({ answer: { outputs }, past: kept(old, key, { outputs, iteration: at ?? ofTrainer(store.get())?.iteration ?? 0 }), key, why: "" })); },
        (error) => { if (now.key === key && error.kind !== "offline") set({ ...NOTHING, why: error.message }); },
      ).finally(() => { now.busy = false; frames.waiting -= frame; });
    };
    let waiting = setTimeout(ask, Math.max(0, now.last + EVERY - performance.now()));
    return () => clearTimeout(waiting);
  }, [key, moment.at ?? pace, online, trainer]);
  return found;
}

function kept(old, key, answer) {
  const past = old.key === key && old.past.at(-1)?.iteration < answer.iteration ? [...old.past, answer] : [answer];
  return past.length > REMEMBERED ? past.filter((_, i) => i % 2 === past.length % 2 || i === 0) : past;
}

const sureness = (share) => t(share > 0.95 ? "try.sure" : share > 0.7 ? "try.fairly" : share > 0.45 ? "try.unsure" : "try.guess");

// The share of a class; a single value is that of the second of two.
const shareOf = ({ classes, values }, i) => (values.length === classes.length ? values[i] : i === 1 ? values[0] : 1 - values[0]);

function Bars({ output }) {
  const list = useRef(null), many = output.classes.length > SHOWN;
  const rows = output.classes.map((name, i) => ({ name, share: shareOf(output, i) }));
  const seen = many ? rows.toSorted((a, b) => b.share - a.share).slice(0, SHOWN) : rows;
  useEffect(() => { list.current.querySelectorAll("i").forEach((bar) => bar.style.setProperty("--share", bar.dataset.share)); }, [output]);
  return html`<ol class="bars" ref=${list}>${seen.map(({ name, share }) => html`<li key=${word(name)} class=${name === output.chosen ? "most" : ""}><b>${word(name)}</b><span class="track"><i data-share=${Math.max(0, Math.min(1, share))}></i></span><span class="share">${percent(share, 1)} %</span></li>`)}</ol>`;
}

// The name of the column that a value predicts; its number if it has none.
const columnOf = ({ columns }, i) => columns?.[i] ?? `${i + 1}`;

export function Answer({ name, output, several }) {
  const only = output.values.length === 1 ? output.columns?.[0] : "";
  const head = html`<p class="note">${several ? t("try.reads.of", { name }) : t("try.reads")}${only ? `: ${only}` : ""}</p>`;
  if (output.chosen === null) return html`<div class="answer">${head}<p class="huge">${output.values.length === 1 ? figure(output.values[0]) : ""}</p>${output.values.length > 1 ? html`<ol class="bars plain">${output.values.slice(0, SHOWN).map((value, i) => html`<li key=${i}><b>${columnOf(output, i)}</b><span class="share">${figure(value)}</span></li>`)}</ol>` : null}</div>`;
  return html`<div class="answer">${head}<p class="huge"><b class=${word(output.chosen).length > 3 ? "long" : ""}>${word(output.chosen)}</b><span>${sureness(output.sure)}, ${percent(output.sure, 0)} %</span></p><${Bars} output=${output} /></div>`;
}

const TONES = ["accent", "s2", "ghost"];

// The share of a class, or a value where there are no classes.
const toldOf = (output, i) => (output.classes.length ? shareOf(output, i) : Number(output.values[i]));

// From where to where the axis goes: shares from 0 to 1, values as they were.
function range(past, name, order) {
  if (past.at(-1).outputs[name].classes.length) return [0, 1];
  const all = past.flatMap(({ outputs }) => order.map(([, i]) => toldOf(outputs[name], i))).filter(Number.isFinite);
  return all.length ? [Math.min(...all), Math.max(...all)] : [0, 1];
}

function paint(past, name) {
  const newest = past.at(-1).outputs[name], chooses = newest.classes.length, order = (chooses ? newest.classes : newest.values).map((_, i) => [toldOf(newest, i), i]).sort((a, b) => b[0] - a[0]).slice(0, 3);
  const [low, high] = range(past, name, order), named = (i) => (chooses ? word(newest.classes[i]) : newest.values.length > 1 ? columnOf(newest, i) : figure(newest.values[i]));
  return (context, width, height, colours) => {
    const left = 44, right = width - 84, top = 12, bottom = height - 24, first = past[0].iteration, last = past.at(-1).iteration;
    const x = (at) => left + ((at - first) / (last - first || 1)) * (right - left), y = (value) => bottom - ((value - low) / (high - low || 1)) * (bottom - top);
    context.font = `12px ${colours.family}`;
    for (const value of high > low ? [low, (low + high) / 2, high] : [low]) {
      context.strokeStyle = colours.line;
      context.fillStyle = colours["ink-3"];
      context.textAlign = "right";
      context.fillText(chooses ? `${value * 100} %` : tick(Number(value.toPrecision(4))), left - 8, y(value) + 4);
      context.beginPath();
      context.moveTo(left, y(value) + 0.5);
      context.lineTo(right, y(value) + 0.5);
      context.stroke();
    }
    context.textAlign = "left";
    context.fillText(count(first), left, height - 6);
    context.textAlign = "right";
    context.fillText(count(last), right, height - 6);
    let above = -Infinity;
    [...order].reverse().forEach(([, i], place) => line(context, past.map((one) => [x(one.iteration), y(toldOf(one.outputs[name], i))]), colours[TONES[order.length - 1 - place]]));
    for (const [k, [share, i]] of order.entries()) {
      above = Math.max(above + 16, y(share) + 4);
      if (above > bottom + 8) break;
      context.fillStyle = colours[TONES[k] === "ghost" ? "ink-3" : TONES[k]];
      context.textAlign = "left";
      context.fillText(named(i).slice(0, 11), right + 10, above);
    }
  };
}

function line(context, points, colour) {
  context.strokeStyle = colour;
  context.lineWidth = 2;
  context.beginPath();
  points.forEach(([x, y], i) => (i ? context.lineTo(x, y) : context.moveTo(x, y)));
  context.stroke();
}

export function Past({ past, name }) {
  const shown = past.length > 1 && past.at(-1).outputs[name];
  return html`<section class="card" aria-labelledby="h-past"><div class="card-head"><h2 id="h-past">${t("try.past")}</h2><span class="note">${shown ? t(shown.classes.length ? "try.past.note" : "try.past.value") : ""}</span></div>
    <div class="past">${shown ? html`<${Plot} height=${200} paint=${paint(past, name)} of=${past.at(-1)} label=${t("try.past.label", { n: past.length, from: count(past[0].iteration), to: count(past.at(-1).iteration) })} />` : html`<p class="empty">${t("try.past.none")}</p>`}</div></section>`;
}
