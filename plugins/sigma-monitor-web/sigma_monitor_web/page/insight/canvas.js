// The canvas of the map: it moves from one map to the next, and chooses points by pointer, touch and keys.
import { html, useEffect, useRef } from "../lib.js";
import { begin, between, bounds, eased, frame, mixed, nearest, points, rings, surfacePixels, within } from "./cloud.js";
import { bytes } from "./paint.js";
import { palette } from "../charts/palette.js";
import { useStore } from "../store.js";
import { t } from "../words.js";

const REACH = 12, SHORT = 6; // pixels; a shorter drag is a press
const STEP = 0.04, LEAST = 0.04; // of a rectangle that keys move, as a share of the canvas
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

// What is drawn now: the cloud, its positions on the way, its bounds, and the surface behind it.
function scene() {
  return { cloud: null, x: null, y: null, from: null, box: null, begun: 0, surface: null, turned: 0, shares: null, image: null, path: null, hand: null };
}

const ends = (now) => (now.surface && now.cloud.of === "plane" ? [now.surface.low[0], now.surface.high[0], now.surface.low[1], now.surface.high[1]] : bounds(now.cloud.x, now.cloud.y));

function takeCloud(now, cloud) {
  if (!cloud || now.cloud === cloud) return;
  const start = begin(cloud, now.cloud ? now : null), kept = now.cloud?.of === cloud.of && now.cloud?.method === cloud.method;
  Object.assign(now, { cloud, from: start, x: start.x.slice(), y: start.y.slice(), past: kept ? now.box : null, begun: performance.now() });
}

function takeSurface(now, surface) {
  if (now.surface === surface) return;
  const shares = surface ? Float32Array.from(bytes(surface.shares)) : null;
  Object.assign(now, { surface, earlier: now.shares?.length === shares?.length ? now.shares : null, goal: shares, turned: performance.now() });
}

function paintSurface(now, pen, width, height, share, shown) {
  const { surface, goal, earlier } = now;
  if (!surface || now.cloud.of !== "plane" || shown.length < Math.max(2, surface.classes)) return;
  now.shares = earlier && share < 1 ? goal.map((value, i) => earlier[i] + (value - earlier[i]) * share) : goal;
  now.image ??= document.createElement("canvas");
  now.image.width = now.image.height = surface.size;
  now.image.getContext("2d").putImageData(new ImageData(surfacePixels(now.shares, surface, shown), surface.size, surface.size), 0, 0);
  pen.imageSmoothingEnabled = true;
  pen.drawImage(now.image, 0, 0, width, height);
}

function paintHand(pen, now, width, height, colours) {
  const path = now.path ?? (now.hand ? corners(now.hand, width, height) : null);
  if (!path?.length) return;
  pen.lineWidth = 1.5;
  pen.strokeStyle = colours.accent;
  pen.setLineDash([5, 3]);
  pen.beginPath();
  path.forEach(([x, y], i) => pen[i ? "lineTo" : "moveTo"](x, y));
  pen.closePath();
  pen.stroke();
  pen.setLineDash([]);
}

const corners = ({ x, y, wide, tall }, width, height) => [[x * width, y * height], [(x + wide) * width, y * height], [(x + wide) * width, (y + tall) * height], [x * width, (y + tall) * height]];

function paint(canvas, now, looks) {
  const sharp = devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight, colours = palette();
  if (canvas.width !== Math.round(width * sharp) || canvas.height !== Math.round(height * sharp)) [canvas.width, canvas.height] = [Math.round(width * sharp), Math.round(height * sharp)];
  const pen = canvas.getContext("2d"), time = performance.now(), [share, turn] = still() ? [1, 1] : [eased(time - now.begun), eased(time - now.turned)];
  pen.setTransform(sharp, 0, 0, sharp, 0, 0);
  pen.clearRect(0, 0, width, height);
  between(now.from, now.cloud, share, now);
  now.box = mixed(share < 1 ? now.past : null, ends(now), share);
  now.at = frame(now.box, width, height, now.cloud.of === "plane");
  paintSurface(now, pen, width, height, turn, looks.surface);
  points(pen, now.at, now, looks.groups, now.cloud.row.length);
  rings(pen, now.at, now, looks.chosen, colours.ink, colours.surface);
  paintHand(pen, now, width, height, colours);
  return Math.min(share, turn) < 1;
}

// The rectangle that keys move, after one of them.
function moved(hand, [across, down], grows) {
  const clamp = (value, most) => Math.min(most, Math.max(0, value));
  if (!grows) return { ...hand, x: clamp(hand.x + across * STEP, 1 - hand.wide), y: clamp(hand.y + down * STEP, 1 - hand.tall) };
  return { ...hand, wide: Math.min(1 - hand.x, Math.max(LEAST, hand.wide + across * STEP)), tall: Math.min(1 - hand.y, Math.max(LEAST, hand.tall + down * STEP)) };
}

// What is drawn around is chosen alone, added to what is chosen, or taken out of it: as Shift and Alt say, or else the buttons.
const wayOf = (event, way) => (event.altKey ? "remove" : event.shiftKey ? "add" : way);

// `looks`: {groups, chosen, surface: colours of its classes}; choose(places, way); point(place) of the point under the pointer, -1 for none.
export function Canvas({ cloud, surface, looks, way, choose, point, label }) {
  const at = useRef(null), now = useRef(scene()).current, due = useRef(0), last = useRef(looks), theme = useStore((state) => state.looks);
  last.current = looks;
  const draw = () => {
    due.current ||= requestAnimationFrame(() => {
      due.current = 0;
      if (at.current && now.cloud && paint(at.current, now, last.current)) draw();
    });
  };
  useEffect(() => { takeCloud(now, cloud); takeSurface(now, surface); draw(); }, [cloud, surface]);
  useEffect(draw, [looks, theme]);
  useEffect(() => {
    const watching = new ResizeObserver(draw);
    watching.observe(at.current);
    return () => watching.disconnect();
  }, []);
  const placed = (event) => { const box = at.current.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
  const down = (event) => {
    if (event.button !== 0 || !now.at) return;
    at.current.setPointerCapture(event.pointerId);
    Object.assign(now, { path: [placed(event)], hand: null });
  };
  const move = (event) => {
    if (!now.at) return;
    if (!now.path) return point(nearest(...placed(event), now.at, now, REACH));
    now.path.push(placed(event));
    draw();
  };
  const up = (event) => {
    const path = now.path, [x, y] = placed(event);
    if (!path) return;
    now.path = null;
    const long = path.some(([px, py]) => Math.hypot(px - path[0][0], py - path[0][1]) > SHORT), one = nearest(x, y, now.at, now, REACH);
    if (event.type !== "pointercancel") choose(long ? within(path, now.at, now) : one < 0 ? [] : [one], wayOf(event, way));
    draw();
  };
  const press = (event) => {
    const arrow = ARROWS[event.key], canvas = at.current;
    if (event.ctrlKey || event.metaKey || (event.altKey && event.key !== "Enter") || !now.at) return;
    if (!arrow && !["Enter", " ", "Escape"].includes(event.key)) return;
    event.preventDefault();
    event.stopPropagation();
    if (arrow) now.hand = now.hand ? moved(now.hand, arrow, event.shiftKey) : { x: 0.4, y: 0.4, wide: 0.2, tall: 0.2 };
    else if (event.key === "Escape") { now.hand = null; choose([], "new"); }
    else if (now.hand) choose(within(corners(now.hand, canvas.clientWidth, canvas.clientHeight), now.at, now), wayOf(event, way));
    draw();
  };
  return html`<canvas class="map" ref=${at} tabindex="0" role="application" aria-roledescription=${t("map.role")} aria-label=${label} aria-describedby="map-how"
    onPointerDown=${down} onPointerMove=${move} onPointerUp=${up} onPointerCancel=${up} onPointerLeave=${() => point(-1)} onKeyDown=${press}></canvas>`;
}
