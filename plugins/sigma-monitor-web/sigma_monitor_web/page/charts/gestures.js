// How one points at the charts: a crosshair through all of them, dragging and ctrl-wheel to zoom, the same by keys.
import { useRef } from "../lib.js";
import { pointer, store } from "../store.js";

const LEAST_DRAG = 6; // pixels
const FACTOR = 1.3;

const clamp = (value, low, high) => Math.min(high, Math.max(low, value));

// Zoom by a factor around a place, never beyond the whole run.
export function zoomed({ low, high, end }, place, factor) {
  const from = Math.max(0, place - (place - low) * factor), to = Math.min(end, place + (high - place) * factor);
  if (to - from >= end * 0.999) return null;
  return to - from < end / 5000 ? [low, high] : [from, to];
}

export function useGestures(host, scene) {
  const now = useRef(scene), drag = useRef(null);
  now.current = scene;
  const plots = () => [...host.current.querySelectorAll(".plot")];
  const left = () => plots()[0]?.getBoundingClientRect().left ?? 0;
  const placeOf = (x) => {
    const { axis, frame } = now.current;
    return axis.low + ((x - frame.left) / (frame.right - frame.left)) * (axis.high - axis.low);
  };
  const show = (place) => {
    const { axis, sx } = now.current;
    const on = place !== null && place >= axis.low && place <= axis.high;
    for (const line of host.current.querySelectorAll(".cross")) {
      line.style.setProperty("opacity", on ? "1" : "0");
      if (on) line.style.setProperty("transform", `translateX(${Math.round(sx(place))}px)`);
    }
    pointer.set({ place: on ? place : null });
  };
  const shade = (from, to) => {
    const zoom = host.current.querySelector(".zoom"), box = host.current.getBoundingClientRect();
    zoom.hidden = from === null;
    if (from === null) return;
    zoom.style.setProperty("left", `${Math.min(from, to) + left() - box.left}px`);
    zoom.style.setProperty("width", `${Math.abs(to - from)}px`);
  };
  const inPlot = (event) => event.target.closest?.("[data-plot]") && !event.target.closest("button, input");
  return {
    onMouseDown: (event) => { // a press on a chart takes the focus from fields, and gives it to nothing: the keys stay awake
      if (!inPlot(event)) return;
      event.preventDefault();
      document.activeElement?.blur();
    },
    onPointerMove: (event) => {
      const x = event.clientX - left();
      if (drag.current && Math.abs(x - drag.current.x) > LEAST_DRAG) {
        host.current.setPointerCapture(event.pointerId);
        shade(drag.current.x, x);
      }
      if (drag.current || inPlot(event)) show(placeOf(x));
      else if (event.pointerType === "mouse") show(null);
    },
    onPointerDown: (event) => {
      if (event.button || !inPlot(event)) return;
      drag.current = { x: event.clientX - left() };
      if (event.pointerType !== "mouse") { show(placeOf(drag.current.x)); drag.current = null; }
    },
    onPointerUp: (event) => {
      if (!drag.current) return;
      const { axis } = now.current, x = event.clientX - left(), from = drag.current.x;
      drag.current = null;
      shade(null);
      if (Math.abs(x - from) <= LEAST_DRAG) return;
      const [low, high] = [placeOf(Math.min(x, from)), placeOf(Math.max(x, from))];
      store.set({ range: [clamp(low, axis.low, axis.high), clamp(high, axis.low, axis.high)] });
    },
    onPointerLeave: () => { if (!drag.current) show(null); },
    onDblClick: (event) => { if (inPlot(event)) store.set({ range: null }); },
    onWheel: (event) => {
      if (!event.ctrlKey || !inPlot(event)) return;
      event.preventDefault();
      store.set({ range: zoomed(now.current.axis, placeOf(event.clientX - left()), event.deltaY > 0 ? FACTOR : 1 / FACTOR) });
    },
    onKeyDown: (event) => {
      if (event.target !== host.current || event.ctrlKey || event.metaKey || event.altKey) return undefined;
      const { axis } = now.current, step = (axis.high - axis.low) / 100;
      const at = pointer.get().place ?? axis.high;
      const way = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 }[event.key];
      const zoom = { "+": 1 / FACTOR, "=": 1 / FACTOR, "-": FACTOR }[event.key];
      if (!way && !zoom && !["0", "Home", "End", "Escape"].includes(event.key)) return undefined;
      event.preventDefault();
      event.stopPropagation();
      if (way) return show(clamp(at + way * step, axis.low, axis.high));
      if (zoom) return store.set({ range: zoomed(axis, at, zoom) });
      if (event.key === "0") return store.set({ range: null });
      return show(event.key === "Escape" ? null : event.key === "Home" ? axis.low : axis.high);
    },
  };
}
