// How one points at the charts: a crosshair through all of them; drag, ctrl-wheel and two fingers zoom along the axis and across it; the
// same by keys.
import { useRef } from "../lib.js";
import { focused } from "../stage.js";
import { pointer, store } from "../store.js";
import { pin } from "./reading.js";
import { directions, moved, scaled, zoomed } from "./zoom.js";

const FACTOR = 1.3;
const APART = 40; // pixels between two fingers, from which on they zoom in that direction
const PINNED = 6; // pixels around a pin in which a press takes it away

const clamp = (value, low, high) => Math.min(high, Math.max(low, value));
const inPlot = (event) => (event.target.closest?.("button, input, a") ? null : event.target.closest?.("[data-plot]"));
const style = (element, values) => { for (const [name, value] of Object.entries(values)) element.style.setProperty(name, value); };

// The gestures on the elements of `host`. `now`: {scene, wide, shapes, change}, the scene of the charts and that of the timeline.
class Gestures {
  constructor(host, now) {
    Object.assign(this, { host, now, fingers: new Map(), drag: null, pinch: null });
  }

  // Where an event is in its plot, and what that means.
  at(event, plot) {
    const box = plot.getBoundingClientRect(), { scene, shapes } = this.now.current;
    const shape = shapes.find((one) => one.lane.id === plot.dataset.plot);
    const x = event.clientX - box.left, y = event.clientY - box.top;
    return { plot, shape, x, y, place: scene.sx.invert(clamp(x, scene.frame.left, scene.frame.right)) };
  }

  show(place, shape = null, y = null) {
    const { scene, wide } = this.now.current, { axis } = scene;
    const on = place !== null && place >= axis.low && place <= axis.high;
    for (const line of this.host.current.querySelectorAll(".cross")) {
      const { sx } = line.closest(".timeline, .media") ? wide : scene;
      style(line, { opacity: on ? "1" : "0", ...(on ? { transform: `translateX(${Math.round(sx(place))}px)` } : {}) });
    }
    pointer.set({ place: on ? place : null, lane: on ? (shape?.lane.id ?? null) : null, y });
  }

  shade(from, to) {
    const zoom = this.host.current.querySelector(".zoom");
    zoom.hidden = !to;
    if (!to) return;
    const { frame } = this.now.current.scene, ways = directions(Math.abs(to.x - from.x), Math.abs(to.y - from.y));
    const box = this.host.current.getBoundingClientRect(), plot = from.plot.getBoundingClientRect();
    const [left, right] = ways.x ? [from.x, to.x].sort((a, b) => a - b) : [frame.left, frame.right];
    const [top, bottom] = ways.y ? [from.y, to.y].sort((a, b) => a - b) : [0, from.shape.tall];
    style(zoom, { left: `${left + plot.left - box.left}px`, width: `${right - left}px`, top: `${top + plot.top - box.top}px`, height: `${bottom - top}px` });
  }

  zoom(from, to) {
    const ways = directions(Math.abs(to.x - from.x), Math.abs(to.y - from.y)), { scene, change } = this.now.current;
    if (ways.x) store.set({ range: [from.place, to.place].sort((a, b) => a - b) });
    if (ways.y) change(from.shape.lane.id, { bounds: [from.y, to.y].map((y) => from.shape.sy.invert(y)).sort((a, b) => a - b) });
    if (ways.x || ways.y) this.show(null); // until it is moved again, the pointer is where something else was
    else pin(scene.axis, to.place, Math.abs(scene.sx.invert(to.x + PINNED) - to.place));
  }

  // Two fingers: what lies between them stays there.
  pinched() {
    const { scene, change } = this.now.current, [one, other] = [...this.fingers.values()], { begun } = this.pinch;
    const [wide, tall] = [Math.abs(one.x - other.x), Math.abs(one.y - other.y)];
    if (begun.wide > APART) store.set({ range: zoomed(begun.axis, begun.place, begun.wide / Math.max(wide, APART)) ?? null });
    if (begun.tall > APART) change(begun.shape.lane.id, { bounds: scaled(begun.shape, begun.value, begun.tall / Math.max(tall, APART)) });
    this.show(scene.sx.invert((one.x + other.x) / 2));
  }

  fingerDown(event, at) {
    this.fingers.set(event.pointerId, at);
    if (this.fingers.size !== 2) return this.show(at.place, at.shape, at.y);
    const [one, other] = [...this.fingers.values()], { scene } = this.now.current;
    this.pinch = { begun: { axis: scene.axis, shape: one.shape, wide: Math.abs(one.x - other.x), tall: Math.abs(one.y - other.y),
      place: scene.sx.invert((one.x + other.x) / 2), value: one.shape.sy.invert((one.y + other.y) / 2) } };
    return undefined;
  }

  down(event) {
    const plot = inPlot(event);
    if (event.button || !plot) return;
    const at = this.at(event, plot);
    if (event.pointerType === "mouse") this.drag = { from: at, axis: this.now.current.scene.axis, moves: event.shiftKey };
    else this.fingerDown(event, at);
  }

  move(event) {
    if (this.drag) return this.dragged(event);
    const plot = inPlot(event);
    if (!plot) return event.pointerType === "mouse" ? this.show(null) : undefined;
    const at = this.at(event, plot);
    if (this.fingers.has(event.pointerId)) this.fingers.set(event.pointerId, { ...at, plot: this.fingers.get(event.pointerId).plot });
    return this.pinch ? this.pinched() : this.show(at.place, at.shape, at.y);
  }

  dragged(event) {
    const { from, axis, moves } = this.drag, to = this.at(event, from.plot), { frame } = this.now.current.scene;
    const ways = directions(Math.abs(to.x - from.x), Math.abs(to.y - from.y));
    if (ways.x || ways.y) this.host.current.setPointerCapture(event.pointerId);
    if (moves) store.set({ range: moved(axis, (from.x - to.x) / (frame.right - frame.left)) });
    else {
      if (ways.x || ways.y) this.shade(from, to);
      this.show(to.place, from.shape, to.y);
    }
  }

  up(event) {
    this.fingers.delete(event.pointerId);
    if (this.fingers.size < 2) this.pinch = null;
    if (!this.drag) return;
    const { from, moves } = this.drag;
    this.drag = null;
    this.shade(null);
    if (!moves) this.zoom(from, this.at(event, from.plot));
  }

  whole(event) {
    const plot = inPlot(event);
    if (!plot) return;
    const { shape } = this.at(event, plot);
    store.set({ range: null });
    if (shape.lane.bounds) this.now.current.change(shape.lane.id, { bounds: undefined });
  }

  wheel(event) {
    const plot = inPlot(event);
    if (!event.ctrlKey || !plot) return;
    event.preventDefault();
    const { shape, x, y, place } = this.at(event, plot), { scene, change } = this.now.current;
    const factor = (event.deltaY || event.deltaX) > 0 ? FACTOR : 1 / FACTOR;
    if (event.shiftKey || x < scene.frame.left) change(shape.lane.id, { bounds: scaled(shape, shape.sy.invert(y), factor) });
    else store.set({ range: zoomed(scene.axis, place, factor) });
  }

  key(event) {
    if (event.target !== this.host.current || event.ctrlKey || event.metaKey || event.altKey) return;
    const { scene: { axis, sx, frame }, shapes, change } = this.now.current, { place, lane } = pointer.get();
    const x = place === null ? frame.right : sx(place), shape = shapes.find((one) => one.lane.id === lane) ?? shapes[0];
    const to = (at, where = shape) => this.show(clamp(sx.invert(at), axis.low, axis.high), where);
    const step = (frame.right - frame.left) / 100, zoom = (factor) => store.set({ range: zoomed(axis, sx.invert(x), factor) });
    const shifted = (way) => (event.shiftKey ? store.set({ range: moved(axis, way / 10) }) : to(x + way * step));
    const across = (way) => (event.shiftKey ? change(shape.lane.id, { bounds: scaled(shape, shape.log ? Math.sqrt(shape.low * shape.high) : (shape.low + shape.high) / 2, FACTOR ** -way) })
      : to(x, shapes[clamp(shapes.indexOf(shape) - way, 0, shapes.length - 1)]));
    const keys = {
      ArrowLeft: () => shifted(-1), ArrowRight: () => shifted(1), ArrowUp: () => across(1), ArrowDown: () => across(-1),
      PageUp: () => to(x - 10 * step), PageDown: () => to(x + 10 * step), Home: () => to(frame.left), End: () => to(frame.right),
      "+": () => zoom(1 / FACTOR), "=": () => zoom(1 / FACTOR), "-": () => zoom(FACTOR), Escape: () => this.show(null),
      "0": () => { store.set({ range: null }); for (const one of shapes) if (one.lane.bounds) change(one.lane.id, { bounds: undefined }); },
      Enter: () => pin(axis, sx.invert(x), Math.abs(sx.invert(x + step / 2) - sx.invert(x))),
    };
    if (!keys[event.key]) return;
    event.preventDefault();
    event.stopPropagation();
    keys[event.key]();
  }
}

export function useGestures(host, current) {
  const now = useRef(current), held = useRef(null);
  now.current = current;
  held.current ??= new Gestures(host, now);
  const own = held.current;
  return {
    onMouseDown: (event) => { // a press on a chart takes the focus from fields, and gives it to nothing: the keys stay awake
      if (!inPlot(event)) return;
      event.preventDefault();
      focused()?.blur();
    },
    onPointerDown: (event) => own.down(event), onPointerMove: (event) => own.move(event), onPointerUp: (event) => own.up(event), onPointerCancel: (event) => { own.drag = null; own.shade(null); own.up(event); },
    onPointerLeave: (event) => { if (!own.drag && event.pointerType === "mouse") own.show(null); },
    onDblClick: (event) => own.whole(event), onWheel: (event) => own.wheel(event), onKeyDown: (event) => own.key(event),
  };
}
