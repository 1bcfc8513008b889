// The charts on one time axis: the bar above them, the lanes in their sections, the axis, and what the pointer reads.
import { html, useEffect, useLayoutEffect, useRef, useState } from "../lib.js";
import { MediaLanes } from "../media/lanes.js";
import { Advice } from "../widgets/advice.js";
import { Icon } from "../widgets/icon.js";
import { find } from "../stage.js";
import { store, useStore } from "../store.js";
import { t } from "../words.js";
import { Add, Bar } from "./bar.js";
import { save } from "./export.js";
import { useGestures } from "./gestures.js";
import { Canvas, Lane } from "./lane.js";
import { prepare } from "./paint.js";
import { whilePrinting } from "./palette.js";
import { paintAll } from "./queue.js";
import { Reading } from "./reading.js";
import { paintRuler } from "./ruler.js";
import { makeScene, placed } from "./scene.js";
import { SYSTEM, isSystem } from "./system.js";
import { Table } from "./table.js";
import { besides, Timeline } from "./timeline.js";
import { sections, useLanes } from "./uselanes.js";
import { useShapes } from "./useshapes.js";
import { useSystem } from "./usesystem.js";

const PHONE = "(max-width: 640px)";
const RULER = 32; // pixels
const PAPER = 680; // pixels that a page of paper is wide

// The widths of the timeline's plot and of the charts'.
function useWidths(columns) {
  const host = useRef(null), [widths, set] = useState([0, 0]);
  useLayoutEffect(() => {
    const measure = () => set((old) => {
      const now = [".timeline .plot", ".cells .plot"].map((one) => host.current.querySelector(one)?.clientWidth ?? 0);
      return now.every((one, i) => one === old[i]) ? old : now;
    });
    const watch = new ResizeObserver(measure);
    watch.observe(host.current);
    measure();
    return () => watch.disconnect();
  }, [columns]);
  return [host, widths];
}

function usePrinting(host) {
  useEffect(() => whilePrinting(() => {
    const card = host.current.closest(".score"), { clientWidth } = card;
    card.style.setProperty("--screen", `${clientWidth}px`);
    card.style.setProperty("--fit", String(Math.min(1, PAPER / clientWidth)));
    paintAll();
  }), []);
}

function Waiting({ tall }) {
  const put = (element) => element?.style.setProperty("height", `${tall}px`);
  return html`<div class="lane waiting"><div class="head"><span class="bar"></span></div><div class="plot" ref=${put}><p class="empty">${t("loading")}</p></div></div>`;
}

// The charts of a section below its name, which folds them away.
function Section({ name, folded, children }) {
  const fold = () => store.set(({ folded: all }) => ({ folded: folded ? all.filter((one) => one !== name) : [...all, name] }));
  const columns = useStore((state) => state.columns);
  return html`${name ? html`<h2 class="section"><button class="quiet" type="button" aria-expanded=${String(!folded)} onClick=${fold}><${Icon} name=${folded ? "right" : "down"} />${name === SYSTEM ? t("system") : name}</button></h2>` : null}
    ${folded ? null : html`<div class=${`cells columns-${columns}`}>${children}</div>`}`;
}

export function Board() {
  const state = useStore((all) => all), { columns, tight } = state;
  const [host, [width, cell]] = useWidths(columns), [adding, show] = useState(false), held = useRef([undefined, undefined]);
  const { lanes: all, change, remove, move, add, reset } = useSystem(useLanes());
  const grouped = sections(all), lanes = grouped.flatMap(([name, mine]) => (state.folded.includes(name) ? [] : mine));
  const phone = matchMedia(PHONE).matches, small = phone || columns > 1;
  usePrinting(host);
  const bare = makeScene(state, lanes), shapes = useShapes(lanes, bare, { small, tight, width: cell });
  const fit = (at, more) => { const made = placed(bare, shapes, { ...more, held: held.current[at] }); held.current[at] = made.frame; return made; };
  const wide = fit(0, { width, small: phone, texts: besides(bare) }), scene = columns > 1 ? fit(1, { width: cell, small: true }) : wide;
  const gestures = useGestures(host, { scene, wide, shapes, change });
  const ready = width > 0 && state.status, board = { scene, wide, shapes, entries: bare.all.flat() };
  const gutter = (element) => element?.style.setProperty("--gutter", `${scene.frame.gutter}px`);
  const lane = (one) => {
    const i = lanes.indexOf(one);
    return html`<${Lane} key=${one.id} lane=${one} shape=${shapes[i]} entries=${bare.all[i]} scene=${scene} ruled=${columns > 1} change=${(patch) => change(one.id, patch)}
      remove=${isSystem(one.id) ? null : () => remove(one.id)} move=${(way) => move(one.id, way)} save=${(kind) => save(kind, board, shapes[i])} />`;
  };
  return html`<div class="score card" id="score" ref=${gutter}>
    <${Bar} adding=${adding} add=${() => show(!adding)} save=${(kind) => save(kind, board)} />
    ${adding ? html`<${Add} add=${add} reset=${reset} close=${() => { show(false); find("#add-chart")?.focus(); }} />` : null}
    <${Advice} />
    <div class="lanes" ref=${host} tabindex="0" role="group" aria-label=${t("charts.keys")} ...${gestures}>
      <${Timeline} scene=${wide} />
      ${ready ? grouped.map(([name, mine]) => html`<${Section} key=${name} name=${name} folded=${state.folded.includes(name)}>${state.folded.includes(name) ? null : mine.map(lane)}<//>`)
    : html`<div class="cells">${[274, 194, 76].map((tall) => html`<${Waiting} key=${tall} tall=${tall} />`)}</div>`}
      ${ready ? html`<${MediaLanes} scene=${wide} ruled=${columns > 1} />` : null}
      ${columns > 1 ? null : html`<div class="lane axis" aria-hidden="true"><div class="head"></div><div class="plot"><${Canvas} height=${RULER} label="" paint=${(canvas) => paintRuler(prepare(canvas, scene.frame.width, RULER), scene)} /></div></div>`}
      <span class="zoom" hidden></span>
    </div>
    <${Reading} scene=${scene} shapes=${shapes} />
    ${state.table ? html`<${Table} scene=${scene} shapes=${shapes} />` : null}
  </div>`;
}
