// The timeline: the current line is straight, abandoned branches hang below; kept states; the range that confirms a rewind.
import { html, useLayoutEffect, useRef } from "../lib.js";
import { stop } from "../film.js";
import { kept, momentAt, nearest } from "../playback.js";
import { attempt, cancel, choose, goOn, possible, recompute, rewinds, running } from "../recall.js";
import { store } from "../store.js";
import { Film, where } from "../widgets/film.js";
import { clockTime, count, spoken } from "../numbers.js";
import { t } from "../words.js";
import { Canvas, shade } from "./lane.js";
import { diamond, disc, flag, measure, prepare, rule, write } from "./paint.js";
import { palette } from "./palette.js";
import { Pins } from "./reading.js";

const LINE = 50, BELOW = 74, STEP = 16, MOST_ROWS = 3;
const SEEN = 200; // the part of the axis that a pause takes at least, to be said

const rowsOf = (scene) => Math.min(MOST_ROWS, Math.max(1, scene.abandoned.length));
export const tallness = (scene) => 92 + (rowsOf(scene) - 1) * STEP;

// The row below the line in which a branch hangs: the newest highest.
const rowOf = (scene, number) => BELOW + Math.min(MOST_ROWS - 1, scene.abandoned.length - 1 - scene.abandoned.findIndex((one) => one.number === number)) * STEP;

export function paintTimeline(pen, scene, picked, wished = null) {
  const colours = palette(), { frame, sx, axis, now, small } = scene, height = tallness(scene);
  const x = (iteration, second, more) => sx(axis.place(iteration, second, more));
  const end = axis.wall ? sx(axis.present) : x(now, axis.clock ? scene.about?.second : undefined);
  pen.save();
  pen.beginPath();
  pen.rect(frame.left - 10, 0, frame.right - frame.left + 20, height);
  pen.clip();
  shade(pen, scene, height, colours);
  rule(pen, Math.max(frame.left, x(0, 0)), LINE, end, LINE, colours.accent, { width: 3 });
  for (const branch of scene.abandoned) hang(pen, branch, scene, x, colours);
  const looked = picked?.iteration ?? wished;
  if (looked !== null) rule(pen, x(looked), LINE, end, LINE, colours.ghost, { width: 4 });
  states(pen, scene, x, colours);
  const at = looked === null ? end : x(looked);
  disc(pen, at, LINE, 7, wished === null ? colours.accent : colours["ink-3"]);
  disc(pen, at, LINE, 2.5, colours.surface);
  pen.restore();
  for (const branch of scene.abandoned) nameBranch(pen, branch, scene, x, colours);
  edits(pen, scene, x, colours, height);
  if (small) return;
  nameSaved(pen, scene, x, colours);
  namePauses(pen, scene, colours, height);
  beside(pen, scene, colours);
}

// How long the run paused, where there is room for it.
function namePauses(pen, { axis, sx, frame }, colours, height) {
  for (const [from, to] of axis.wall?.pauses ?? []) {
    const left = Math.max(frame.left, sx(from)), right = Math.min(frame.right, sx(to)), text = t("paused.for", { time: spoken(to - from) });
    if (measure(text) + 12 < right - left) write(pen, text, (left + right) / 2, height - 8, { colour: colours["ink-2"], family: colours.family, align: "center" });
  }
}

// Where a branch that was left begins and ends: on the wall, it was there before the one that is alive.
const endsOf = (branch, { axis }, x) => [x(branch.from), x(branch.end, axis.wall ? branch.second : undefined, { branch: branch.number })];

function hang(pen, branch, scene, x, colours) {
  const [from, to] = endsOf(branch, scene, x), y = rowOf(scene, branch.number);
  const bend = Math.min(26, Math.max(4, to - from));
  Object.assign(pen, { strokeStyle: colours.ghost, lineWidth: 2 });
  pen.beginPath();
  pen.moveTo(from, LINE);
  pen.bezierCurveTo(from + bend * 0.54, LINE, from + bend * 0.3, y, from + bend, y);
  pen.lineTo(Math.max(to, from + bend), y);
  pen.moveTo(to - 4, y - 4);
  pen.lineTo(to + 4, y + 4);
  pen.moveTo(to + 4, y - 4);
  pen.lineTo(to - 4, y + 4);
  pen.stroke();
}

// The name of a branch that was left, right of its end: in full where there is room, else short, else below its line.
function nameBranch(pen, branch, scene, x, colours) {
  const [from, to] = endsOf(branch, scene, x), y = rowOf(scene, branch.number), { left, right, width } = scene.frame;
  if (to < left || from > right) return;
  const end = Math.min(to, right), short = t("branch", { n: branch.number });
  const own = { colour: colours["ink-3"], paper: colours.surface, family: colours.family };
  pen.font = `12px ${colours.family}`;
  const text = [scene.small ? short : t("branch.left", { n: branch.number, at: count(branch.end) }), short].find((one) => end + 12 + pen.measureText(one).width < width - 4);
  if (text && to <= right + 1) write(pen, text, end + 12, y + 4, own);
  else write(pen, short, Math.max(left, from) + 26, y - 5, own);
}

function states(pen, scene, x, colours) {
  for (const one of scene.kept) {
    const at = x(one.iteration, one.second);
    if (one.saved) diamond(pen, at, LINE, 7, colours.surface, colours.accent, 2);
    else disc(pen, at, LINE, one.recalled ? 3 : 4, colours.surface, one.recalled ? colours["ink-3"] : colours.accent, 2);
  }
}

function nameSaved(pen, scene, x, colours) {
  const saved = scene.kept.filter((one) => one.saved).at(-1), at = saved ? x(saved.iteration, saved.second) : NaN;
  if (at >= scene.frame.left && at <= scene.frame.right + 1) write(pen, t("saved"), at, LINE - 12, { colour: colours["ink-3"], paper: colours.surface, family: colours.family, align: "center" });
}

// Flags with their text where there is room; the newest texts win.
function edits(pen, scene, x, colours, height) {
  let free = Infinity;
  const own = { colour: colours["ink-2"], paper: colours.surface, family: colours.family };
  const texts = [];
  for (const one of [...scene.flags].sort((a, b) => b.iteration - a.iteration)) {
    const at = x(one.iteration, one.second, one);
    if (at < scene.frame.left - 1 || at > scene.frame.right + 1) continue;
    const y = one.left ? rowOf(scene, one.branch) - 14 : 14;
    flag(pen, at, height, colours, { left: one.left, top: y, size: one.left ? 9 : 13 });
    if (one.left) continue;
    pen.font = `12px ${colours.family}`;
    const room = Math.min(free, scene.frame.width - 8) - at - 18;
    const text = [scene.small ? one.short : one.text, one.short].find((words) => pen.measureText(words).width < room);
    if (text) texts.push([text, at + 18]);
    free = Math.min(free, at - 10);
  }
  for (const [text, at] of texts) write(pen, text, at, 23, own);
}

function beside(pen, scene, colours) {
  const at = scene.frame.right + 14, own = { paper: colours.surface, family: colours.family };
  const end = scene.sx(scene.axis.present), strong = { ...own, colour: colours.accent, weight: 600 };
  if (end > scene.frame.right + 1) return;
  if (end > scene.frame.right - 24) write(pen, t("now"), at, LINE - 2, strong);
  else write(pen, t("now"), end, LINE - 12, { ...strong, align: "center" });
  for (const text of besides(scene)) write(pen, text, at, LINE + 14, { ...own, colour: colours["ink-3"] });
}

// What is written at the right of the timeline: how much is left to do, if that is known.
export function besides({ about }) {
  if (!Number.isFinite(about?.epochs)) return [];
  const left = Math.max(0, about.epochs - about.epoch);
  return [left ? t("epochs.left", { n: count(left) }) : t("epochs.none")];
}

const spot = (state) => [t("at.iteration", { n: count(state.iteration) }), state.between ? "" : t("at.epoch", { n: count(state.epoch) })].filter(Boolean).join(", ");

// What the range picks at an iteration; null is now.
const chosen = (state, states, now, iteration) => (state.between ? (iteration < now ? momentAt(states, iteration) : null) : nearest(states, now, iteration));

function Range({ scene, picked, wished }) {
  const field = useRef(null), states = kept(scene.state), { between } = scene.state;
  const pick = (one) => { stop(); store.set({ picked: one, wished: null, refused: "" }); };
  const slide = (event) => {
    const found = chosen(scene.state, states, scene.now, Number(event.target.value));
    event.target.value = found ? found.iteration : scene.now;
    pick(found);
  };
  const keys = (event) => {
    const way = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 }[event.key];
    if (event.key === "Escape") return pick(null);
    if (event.key === "Enter") return wished === null ? goOn(scene.state) : possible(scene.state) && !running(scene.state) && recompute();
    if (!way) return undefined;
    event.preventDefault();
    const from = picked?.iteration ?? wished ?? scene.now, before = states.filter((one) => one.iteration < scene.now);
    if (event.shiftKey) { stop(); return between ? pick(chosen(scene.state, states, scene.now, Math.max(0, from + way))) : choose(from + way); }
    return pick((way < 0 ? before.findLast((one) => one.iteration < from) ?? picked ?? before[0] : before.find((one) => one.iteration > from)) ?? null);
  };
  const [from, to] = [scene.sx(scene.axis.low), scene.sx(scene.axis.high)];
  useLayoutEffect(() => {
    field.current.style.setProperty("left", `${from - 8}px`);
    field.current.style.setProperty("width", `${to - from + 16}px`);
    field.current.value = picked?.iteration ?? wished ?? scene.now;
  });
  const low = Math.round(scene.axis.iterationAt(scene.axis.low)), high = Math.round(scene.axis.iterationAt(scene.axis.high));
  return html`<input ref=${field} type="range" id="rewind" min=${low} max=${Math.max(high, low + 1)} aria-label=${t(between ? "film.moment" : "rewind.range")}
    aria-valuetext=${picked ? spot(picked) : wished !== null ? t("recall.none", { at: count(wished) }) : `${t("now")}, ${t("at.iteration", { n: count(scene.now) })}`} disabled=${between ? !scene.now : !states.length} onPointerDown=${stop} onInput=${slide} onKeyDown=${keys} />`;
}

const back = () => store.set({ picked: null, wished: null, refused: "" });

// Any iteration before now, as a number.
function Exact({ at, now }) {
  const take = (event) => { if (event.target.value.trim() && Number(event.target.value) !== at) choose(Number(event.target.value)); };
  return html`<label class="exact">${t("iteration")} <input type="number" id="exact" min="0" max=${now - 1} step="1" value=${at} onChange=${take} /></label>`;
}

// What may be done with the picked state: to go on from there, or back to now.
function Ask({ scene, picked, branch, newest }) {
  const steers = rewinds(scene.state), run = scene.state.hello?.folder?.split("/").filter(Boolean).at(-1);
  const says = steers ? t("rewind.question", { at: count(picked.iteration), epoch: count(picked.epoch), branch, next: newest + 1 }) : where(picked);
  return html`<div class="ask" role="group" aria-label=${t("do.rewind")} onKeyDown=${(event) => { if (event.key === "Escape") back(); }}>
    <p>${says}${picked.recalled ? html`. ${t("recall.fork")} <code>sigma fork ${run} --at ${picked.iteration}</code>` : null}</p>
    ${picked.between ? null : html`<${Exact} at=${picked.iteration} now=${scene.now} />`}
    ${steers ? html`<button class="primary" type="button" onClick=${() => goOn(scene.state)}>${t("do.rewind")}</button>` : null}
    <button type="button" onClick=${back}>${t(steers ? "cancel" : "film.now")}</button></div>`;
}

// A moment without a kept state: it is computed again, if it is asked for; that can be cancelled.
function Wish({ scene, wished }) {
  const { state } = scene, tried = attempt(state), goes = running(state), mine = goes?.iteration === wished;
  const why = state.refused || (tried?.state === "failed" ? tried.why : "");
  return html`<div class="ask" role="group" aria-label=${t("recall")} onKeyDown=${(event) => { if (event.key === "Escape") back(); }}>
    <p>${mine ? t("recall.reached", { reached: count(goes.reached), at: count(wished) }) : t(goes ? "recall.other" : "recall.none", { at: count(goes ? goes.iteration : wished) })}</p>
    ${goes ? html`<progress max=${Math.max(1, goes.iteration)} value=${goes.reached} aria-label=${t("recall.running", { at: count(goes.iteration) })}></progress><button type="button" id="recall-cancel" onClick=${cancel}>${t("recall.cancel")}</button>` : null}
    ${mine ? null : html`<${Exact} at=${wished} now=${scene.now} />`}
    ${!goes && possible(state) ? html`<button class="primary" type="button" id="recall" onClick=${recompute}>${t("recall.do")}</button>` : null}
    <button type="button" onClick=${back}>${t("film.now")}</button>
    ${why && !goes ? html`<p class="why" role="alert">${why}</p>` : null}</div>`;
}

// The pauses that can be seen, in words.
const pausesOf = (axis) => (axis.wall?.pauses ?? []).filter(([from, to]) => to - from > (axis.high - axis.low) / SEEN).map(([from, to]) => t("paused.from", { from: clockTime(axis.wall.origin + from, 0), to: clockTime(axis.wall.origin + to, 0) }));

export function Timeline({ scene }) {
  const { picked, playing, wished } = scene.state;
  const branch = scene.about?.branch ?? 0, start = scene.alive.at(-1)?.from ?? 0;
  const newest = Math.max(branch, ...scene.state.branches.map((one) => one.number));
  const states = scene.kept.filter((one) => !one.recalled).length;
  const says = [t("branch.from", { n: branch, at: count(start) }), t("states.kept", { n: states }), ...scene.abandoned.map((one) => t("branch.left", { n: one.number, at: count(one.end) })), ...scene.flags.map((one) => `${count(one.iteration)}: ${one.text}`), ...pausesOf(scene.axis)].join("; ");
  return html`<section class="lane timeline" aria-labelledby="l-timeline">
    <div class="head"><h2 id="l-timeline">${t("timeline")}</h2><p class="note"><b>${t("branch", { n: branch })}</b>${start ? `, ${t("from", { at: count(start) })}` : ""}</p>
      <p class="note">${t("states.kept", { n: states })}</p><${Film} /></div>
    <div class="plot" onPointerDown=${stop}><${Canvas} height=${tallness(scene)} label=${says} paint=${(canvas) => paintTimeline(prepare(canvas, scene.frame.width, tallness(scene)), scene, picked, wished)} />
      <${Range} scene=${scene} picked=${picked} wished=${wished} /><${Pins} scene=${scene} /><span class="cross" aria-hidden="true"></span></div>
    ${picked && !playing ? html`<${Ask} scene=${scene} picked=${picked} branch=${branch} newest=${newest} />` : null}
    ${wished !== null && !playing ? html`<${Wish} scene=${scene} wished=${wished} />` : null}
  </section>`;
}
