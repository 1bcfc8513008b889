// Mouse and touch on a drawing: a press opens, a drag moves, ctrl-wheel and two fingers zoom.
import { useRef } from "../lib.js";
import { movedBy, scaledAt } from "./walk.js";

const FACTOR = 1.15; // of a turn of the wheel
const STILL = 4; // pixels that a press may move

class Hands {
  constructor(host, now) {
    Object.assign(this, { host, now, fingers: new Map(), begun: null, moved: false });
  }

  place(event) {
    const box = this.host.current.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  down(event) {
    if (event.button) return;
    this.fingers.set(event.pointerId, this.place(event));
    this.moved = this.fingers.size > 1;
    this.begun = this.place(event);
  }

  move(event) {
    const before = this.fingers.get(event.pointerId);
    if (!before) return;
    const [x, y] = this.place(event), { change, drawn } = this.now.current;
    if (!this.moved && Math.hypot(x - this.begun[0], y - this.begun[1]) <= STILL) return;
    if (!this.moved) this.host.current.setPointerCapture(event.pointerId);
    this.moved = true;
    const other = [...this.fingers].find(([id]) => id !== event.pointerId)?.[1];
    this.fingers.set(event.pointerId, [x, y]);
    if (!other) return change((view) => movedBy(view, drawn, before[0] - x, before[1] - y));
    const apart = (point) => Math.hypot(point[0] - other[0], point[1] - other[1]) || 1, middle = (point) => [(point[0] + other[0]) / 2, (point[1] + other[1]) / 2];
    const [from, to] = [middle(before), middle([x, y])];
    return change((view) => movedBy(scaledAt(view, apart([x, y]) / apart(before), ...from), drawn, from[0] - to[0], from[1] - to[1]));
  }

  up(event) {
    this.fingers.delete(event.pointerId);
  }

  click(event) {
    if (this.moved) return;
    const { press, toggle } = this.now.current, box = event.target.closest("[data-box]"), frame = event.target.closest("[data-fold]");
    if (box) press(box.dataset.box);
    else if (frame && event.target.closest(".tab, text")) toggle(frame.dataset.fold);
  }

  wheel(event) {
    if (!event.ctrlKey) return;
    event.preventDefault();
    this.now.current.change((view) => scaledAt(view, event.deltaY > 0 ? 1 / FACTOR : FACTOR, ...this.place(event)));
  }
}

export function useHands(host, current) {
  const now = useRef(current), held = useRef(null);
  now.current = current;
  held.current ??= new Hands(host, now);
  const own = held.current;
  return {
    onPointerDown: (event) => own.down(event), onPointerMove: (event) => own.move(event), onPointerUp: (event) => own.up(event), onPointerCancel: (event) => own.up(event),
    onPointerLeave: (event) => own.up(event), onClick: (event) => own.click(event), onWheel: (event) => own.wheel(event),
  };
}
