// A pad to draw on, and the drawing as the data have theirs: as large as these, its centre of mass in the middle.
import { html, useEffect, useRef } from "../lib.js";
import { palette } from "../charts/palette.js";
import { useStore } from "../store.js";
import { t } from "../words.js";

const SIDE = 280; // pixels of the pad

export const strokeOf = ({ fill, sides: [height, width] }) => Math.max(24, (1.6 * 200) / (fill * Math.max(height, width)));

// The box of the drawing, its mass and its centre; null for an empty pad. `alpha`: shares from 0 to 1, row by row.
export function extent(alpha, side) {
  let left = side, right = -1, top = Infinity, bottom = -1, mass = 0, x = 0, y = 0;
  for (let i = 0; i < alpha.length; i++) {
    if (alpha[i] < 0.02) continue;
    const column = i % side, row = (i - column) / side;
    left = Math.min(left, column); right = Math.max(right, column); top = Math.min(top, row); bottom = Math.max(bottom, row);
    mass += alpha[i]; x += alpha[i] * (column + 0.5); y += alpha[i] * (row + 0.5);
  }
  return mass ? { left, right: right + 1, top, bottom: bottom + 1, x: x / mass, y: y / mass } : null;
}

const within = (value, low, high) => (low > high ? (low + high) / 2 : Math.min(high, Math.max(low, value)));

// What is drawn on `side` by `side` pixels as `height` by `width` shares: `fill` is the share of the longer side that data fill.
export function centred(alpha, side, { fill, sides: [height, width] }) {
  const box = extent(alpha, side), to = new Float64Array(height * width);
  if (!box) return null;
  const scale = (fill * Math.max(height, width)) / Math.max(box.right - box.left, box.bottom - box.top);
  const shift = (centre, from, end, room) => within(room / 2 - centre * scale, -from * scale, room - end * scale);
  const right = shift(box.x, box.left, box.right, width), down = shift(box.y, box.top, box.bottom, height);
  for (let i = 0; i < alpha.length; i++) {
    if (!alpha[i]) continue;
    const column = i % side, x = Math.floor((column + 0.5) * scale + right), y = Math.floor(((i - column) / side + 0.5) * scale + down);
    if (x >= 0 && x < width && y >= 0 && y < height) to[y * width + x] += alpha[i] * scale * scale;
  }
  return [...to].map((share) => Math.min(1, share));
}

const shares = (context) => {
  const { data } = context.getImageData(0, 0, SIDE, SIDE);
  return Float64Array.from({ length: SIDE * SIDE }, (_, i) => data[i * 4 + 3] / 255);
};

const placed = (event, canvas) => {
  const box = canvas.getBoundingClientRect();
  return [((event.clientX - box.left) / box.width) * SIDE, ((event.clientY - box.top) / box.height) * SIDE];
};

// `blank` counts how often the pad was cleared; hear(shares) is called as the drawing changes.
export function Pad({ form, blank, hear }) {
  const at = useRef(null), before = useRef(null), due = useRef(0), theme = useStore((state) => state.looks);
  useEffect(() => { at.current.getContext("2d", { willReadFrequently: true }).clearRect(0, 0, SIDE, SIDE); }, [blank]);
  useEffect(() => { // ink of the new theme
    const context = at.current.getContext("2d");
    context.globalCompositeOperation = "source-in";
    context.fillStyle = palette().ink;
    context.fillRect(0, 0, SIDE, SIDE);
    context.globalCompositeOperation = "source-over";
  }, [theme]);
  const tell = () => {
    due.current ||= requestAnimationFrame(() => {
      due.current = 0;
      if (at.current) hear(centred(shares(at.current.getContext("2d")), SIDE, form));
    });
  };
  const draw = (event) => {
    if (!before.current) return;
    const context = at.current.getContext("2d");
    for (const one of event.getCoalescedEvents?.() ?? [event]) {
      const next = placed(one, at.current);
      Object.assign(context, { lineCap: "round", lineJoin: "round", lineWidth: strokeOf(form), strokeStyle: palette().ink });
      context.beginPath();
      context.moveTo(...before.current);
      context.lineTo(...next);
      context.stroke();
      before.current = next;
    }
    tell();
  };
  const begin = (event) => {
    event.preventDefault();
    at.current.setPointerCapture(event.pointerId);
    before.current = placed(event, at.current);
    draw({ ...event, clientX: event.clientX + 0.01, clientY: event.clientY });
  };
  const end = () => { before.current = null; };
  return html`<canvas class="drawn" width=${SIDE} height=${SIDE} ref=${at} role="img" aria-label=${t("try.pad")} onPointerDown=${begin} onPointerMove=${draw} onPointerUp=${end} onPointerCancel=${end}></canvas>`;
}

