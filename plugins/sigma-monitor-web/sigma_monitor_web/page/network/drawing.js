// The drawn network: boxes and arrows as SVG, moved and zoomed by mouse, touch and keys. Screen readers have the list beside it, and hear each box.
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../lib.js";
import { announce } from "../announce.js";
import { whilePrinting } from "../charts/palette.js";
import { Icon } from "../widgets/icon.js";
import { useStore } from "../store.js";
import { t } from "../words.js";
import { LINE, TITLE, boxOf, clipped, groupName, inBytes, ownersOf, spokenBox } from "./boxes.js";
import { foldedAtFirst, graphOf, groupsOf } from "./groups.js";
import { curved, head, place, tied } from "./layout.js";
import { useHands } from "./hands.js";
import { sharesOf } from "./shares.js";
import { fitted, movedBy, scaledAt, showing, stepped } from "./walk.js";

const NARROW = 640; // pixels of width below which arrows go down
const COLOURS = 6; // of optimisers
const FACTOR = 1.25, STEP = 60; // of a key that zooms, and pixels of one that moves

function useWidth() {
  const host = useRef(null), [width, set] = useState(0);
  useLayoutEffect(() => {
    const measure = () => set(host.current.clientWidth), watch = new ResizeObserver(measure);
    watch.observe(host.current);
    measure();
    return () => watch.disconnect();
  }, []);
  return [host, width];
}

function Box({ box, optimisers, chosen, at }) {
  const { x, y, width, height, title, lines, shares, kind, group } = box, owners = ownersOf(box, optimisers), room = width - 20;
  const own = kind === "optimiser" && optimisers.length > 1 ? [optimisers.indexOf(box.optimiser)] : owners, foot = height - 8;
  const bar = (share, i) => html`<g key=${share.name}><rect class="rest" x="10" y=${foot - 7 + i * 5} width=${room} height="3" rx="1.5" /><rect class=${`share ${share.name}`} x="10" y=${foot - 7 + i * 5} width=${Math.max(2, room * share.value)} height="3" rx="1.5" /></g>`;
  const told = shares.map((one) => one.text);
  return html`<g class=${`box ${kind} ${group ? "many" : ""} ${chosen ? "chosen" : ""} ${at ? "at" : ""}`} data-box=${box.id} transform=${`translate(${x} ${y})`}><title>${title}</title>
    ${group ? html`<rect class="behind" x="5" y="5" width=${width} height=${height} rx="6" />` : null}<rect class="face" width=${width} height=${height} rx=${kind === "cost" ? height / 2.4 : 6} />
    ${own.map((i, n) => html`<rect key=${i} class=${`owner c-s${(i % COLOURS) + 1}`} x="0" y=${6 + n * 6} width="4" height=${height - 12 - n * 12} fill="currentColor" />`)}
    <text class="name" x="10" y="18">${clipped(title, room, TITLE, 600)}</text>${lines.map((line, i) => html`<text key=${i} class="line" x="10" y=${34 + i * 16}>${clipped(line, room, LINE)}</text>`)}
    ${told.length ? html`<text class="line" x="10" y=${34 + lines.length * 16 - 1}>${told[0]}</text>${told[1] ? html`<text class="line" x=${width - 10} y=${34 + lines.length * 16 - 1} text-anchor="end">${told[1]}</text>` : null}${shares.map(bar)}` : null}</g>`;
}

const Frame = ({ frame, name }) => html`<g class="frame" data-fold=${frame.id}><rect class="edge" x=${frame.x} y=${frame.y} width=${frame.width} height=${frame.height} rx="8" />
  <rect class="tab" x=${frame.x} y=${frame.y - 19} width=${frame.width} height="19" /><text x=${frame.x + 4} y=${frame.y - 6}>− ${clipped(name, frame.width - 20, LINE)}</text></g>`;

function Picture({ drawn, layers, optimisers, chosen, at }) {
  const by = new Map(drawn.boxes.map((box) => [box.id, box]));
  return html`${drawn.frames.map((frame) => html`<${Frame} key=${frame.id} frame=${frame} name=${groupName(frame, layers)} />`)}
    ${drawn.arrows.map(({ from, to, kind, points }) => html`<g key=${`${from} ${to}`} class=${`arrow ${kind} ${from === at || to === at ? "near" : ""}`}><path d=${curved(points)} /><path class="head" d=${head(points)} /></g>`)}
    ${drawn.shared.map(({ from, to }) => html`<path key=${`${from} ${to}`} class="tie" d=${tied(by.get(from), by.get(to))} />`)}
    ${drawn.boxes.map((box) => html`<${Box} key=${box.id} box=${box} optimisers=${optimisers} chosen=${box.layers.some((one) => one.name === chosen)} at=${box.id === at} />`)}`;
}

function Legend({ drawn, optimisers, shares }) {
  const key = (name, text) => html`<span class="key"><svg class="sample" viewBox="0 0 24 8" aria-hidden="true"><path class=${name} d="M0 4h24" /></svg>${text}</span>`;
  return html`<p class="legend">${key("flow", t("graph.flow"))}${drawn.shared.length ? key("tie", t("graph.shared")) : null}${optimisers.length ? key("minimises", t("graph.minimises")) : null}
    <span class="note push">${shares.operations ? t("graph.estimated", { bytes: inBytes(shares.bytes) }) : shares.bytes ? t("graph.stored", { bytes: inBytes(shares.bytes) }) : ""}</span></p>`;
}

function Tools({ groups, folded, fold, zoom, fit }) {
  const all = groups.length && groups.every((one) => folded.has(one.id));
  return html`<div class="row push tools">${groups.length ? html`<button class="quiet" type="button" onClick=${() => fold(new Set(all ? [] : groups.map((one) => one.id)))}>${t(all ? "graph.unfold" : "graph.fold")}</button>` : null}
    <button class="quiet icon" type="button" aria-label=${t("graph.closer")} title=${`${t("graph.closer")} (+)`} onClick=${() => zoom(FACTOR)}><${Icon} name="plus" /></button>
    <button class="quiet icon" type="button" aria-label=${t("graph.further")} title=${`${t("graph.further")} (−)`} onClick=${() => zoom(1 / FACTOR)}><${Icon} name="minus" /></button>
    <button class="quiet" type="button" title="0" onClick=${fit}>${t("graph.whole")}</button></div>`;
}

const boxAttribute = ({ x, y, k, width, height }) => `${x} ${y} ${width / k} ${height / k}`;

// On paper the whole drawing is seen, whatever part of it is on the screen.
function usePaper(picture, drawn, view) {
  const now = useRef(null);
  now.current = { drawn, view };
  useEffect(() => whilePrinting(() => {
    const { drawn: { width, height }, view: seen } = now.current, printing = document.documentElement.classList.contains("printing");
    picture.current?.setAttribute("viewBox", printing ? `0 0 ${width} ${height}` : boxAttribute(seen));
  }), []);
}

// What the keys do in the drawing.
function keysOf({ drawn, at, go, press, change, fit, view, toggle }) {
  const walk = (event) => {
    if (event.shiftKey) return change((old) => movedBy(old, drawn, ...({ ArrowLeft: [-STEP, 0], ArrowRight: [STEP, 0], ArrowUp: [0, -STEP], ArrowDown: [0, STEP] }[event.key])));
    const to = stepped(drawn, at, event.key);
    return to === null ? undefined : go(to);
  };
  const zoom = (factor) => change((old) => scaledAt(old, factor, view.width / 2, view.height / 2));
  return {
    ArrowLeft: walk, ArrowRight: walk, ArrowUp: walk, ArrowDown: walk, Home: () => go(drawn.boxes[0].id), End: () => go(drawn.boxes.at(-1).id),
    "+": () => zoom(FACTOR), "=": () => zoom(FACTOR), "-": () => zoom(1 / FACTOR), "0": fit, Enter: () => press(at),
    Backspace: () => { const frame = drawn.frames.find((one) => one.names.includes(at)); if (frame) toggle(frame.id); },
  };
}

// `choose(layer)` opens the layer of a box below.
export function Drawing({ layers, work, chosen, choose }) {
  const [host, width] = useWidth(), picture = useRef(null), language = useStore((state) => state.language), groups = useMemo(() => groupsOf(layers), [layers]);
  const [folded, fold] = useState(() => foldedAtFirst(layers, groups)), [at, mark] = useState(chosen), [part, see] = useState(null);
  const shares = useMemo(() => sharesOf(work), [work]), optimisers = useMemo(() => work.filter((one) => one.component), [work]), down = width < NARROW;
  const drawn = useMemo(() => {
    const graph = graphOf(layers, optimisers, groups, folded), nodes = graph.nodes.map((node) => ({ ...node, ...boxOf(node, { layers, optimisers, shares }) }));
    return { ...place({ ...graph, nodes }, (node) => [node.width, node.height], down), shared: graph.shared };
  }, [layers, optimisers, groups, folded, shares, down, language]);
  useEffect(() => { const box = drawn.boxes.find((one) => one.layers.some((layer) => layer.name === chosen)); if (box) mark(box.id); }, [chosen]);
  const whole = fitted(drawn, width || NARROW), view = part && part.width === whole.width ? { ...part, height: whole.height } : whole;
  const change = (how) => see((old) => how(old && old.width === whole.width ? { ...old, height: whole.height } : whole)), fit = () => see(null);
  const toggle = (id) => { fold((old) => { const next = new Set(old); if (!next.delete(id)) next.add(id); return next; }); mark((old) => groups.find((one) => one.id === id)?.names.includes(old) ? id : old === id ? groups.find((one) => one.id === id).names[0] : old); };
  const go = (id) => {
    const box = drawn.boxes.find((one) => one.id === id), after = drawn.arrows.filter((one) => one.from === id).map((one) => drawn.boxes.find((other) => other.id === one.to).title);
    mark(id);
    change((old) => showing(old, box));
    announce(spokenBox(box, after));
  };
  const press = (id) => {
    const box = drawn.boxes.find((one) => one.id === id);
    if (!box) return;
    mark(id);
    if (box.group) toggle(box.group.id);
    else if (box.layers.length) choose(box.layers[0]);
    else announce(spokenBox(box, [...box.optimiser.updates]));
  };
  usePaper(picture, drawn, view);
  const hands = useHands(host, { view, drawn, change, press, toggle }), keys = keysOf({ drawn, at, go, press, change, fit, view, toggle });
  const onKeyDown = (event) => {
    if (event.target !== host.current || event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
    event.preventDefault();
    event.stopPropagation();
    keys[event.key](event);
  };
  const put = (element) => { picture.current = element; element?.style.setProperty("height", `${view.height}px`); };
  return html`<section class="card net-card" aria-labelledby="h-graph"><div class="card-head"><h2 id="h-graph">${t("graph")}</h2><${Tools} groups=${groups} folded=${folded} fold=${fold} fit=${fit} zoom=${(factor) => change((old) => scaledAt(old, factor, view.width / 2, view.height / 2))} /></div>
    <div class="net" ref=${host} tabindex="0" role="group" aria-label=${t("graph.keys")} onKeyDown=${onKeyDown} ...${hands}><svg ref=${put} viewBox=${boxAttribute(view)} aria-hidden="true">
      ${width ? html`<${Picture} drawn=${drawn} layers=${layers} optimisers=${optimisers} chosen=${chosen} at=${at} />` : null}</svg></div>
    <${Legend} drawn=${drawn} optimisers=${optimisers} shares=${shares} /></section>`;
}
