// A cloud of points: its typed arrays, its place on a canvas, its way from one map to the next. Pure but for painting.
import { bytes, numbers } from "./paint.js";

const AIR = 0.06; // around the points, as a share of the canvas
const LONG = 600; // milliseconds of a movement
const RADIUS = 2.2, FEW = 600, LARGE = 3.4; // pixels; of few points
const MANY = 150; // chosen points

const floats = (text) => new Float32Array(bytes(text).buffer);

// The answer of the server, with typed arrays; `x`, `y` as they were sent.
export function unpacked(found) {
  const split = bytes(found.split), row = new Uint32Array(bytes(found.row).buffer);
  return { ...found, split, row, x: floats(found.x), y: floats(found.y), label: floats(found.label), loss: found.loss && floats(found.loss), right: found.right && new Int8Array(bytes(found.right).buffer), excluded: bytes(found.excluded) };
}

export const keyOf = (cloud, i) => cloud.split[i] * 2 ** 32 + cloud.row[i];

function same(a, b) {
  return a.row.length === b.row.length && a.row.every((row, i) => row === b.row[i] && a.split[i] === b.split[i]) && a.splits.join() === b.splits.join();
}

// Positions of the points of `cloud` where `before` has those of the same rows; others begin where they end.
export function begin(cloud, before) {
  if (!before || before.cloud.of !== cloud.of || before.cloud.method !== cloud.method) return { x: cloud.x.slice(), y: cloud.y.slice() };
  if (same(cloud, before.cloud)) return { x: before.x.slice(), y: before.y.slice() };
  const x = cloud.x.slice(), y = cloud.y.slice(), at = new Map(Array.from(before.cloud.row, (_, i) => [keyOf(before.cloud, i), i]));
  cloud.row.forEach((_, i) => {
    const k = at.get(keyOf(cloud, i));
    if (k !== undefined) { x[i] = before.x[k]; y[i] = before.y[k]; }
  });
  return { x, y };
}

export const eased = (ms) => { const share = Math.min(1, ms / LONG); return share * share * (3 - 2 * share); };

// The positions between two maps, written to `to`.
export function between(from, cloud, share, to) {
  for (let i = 0; i < cloud.x.length; i++) {
    to.x[i] = from.x[i] + (cloud.x[i] - from.x[i]) * share;
    to.y[i] = from.y[i] + (cloud.y[i] - from.y[i]) * share;
  }
}

// The least and the greatest of positions: [x, x, y, y].
export function bounds(x, y) {
  let [left, right, low, high] = [Infinity, -Infinity, Infinity, -Infinity];
  for (let i = 0; i < x.length; i++) {
    if (x[i] < left) left = x[i];
    if (x[i] > right) right = x[i];
    if (y[i] < low) low = y[i];
    if (y[i] > high) high = y[i];
  }
  return right >= left ? [left, right, low, high] : [0, 1, 0, 1];
}

export const mixed = (a, b, share) => (a ? a.map((value, k) => value + (b[k] - value) * share) : b);

// Where a position lies on a canvas: both axes have one scale, unless the map is `whole` and fills it.
export function frame([left, right, low, high], width, height, whole) {
  const room = whole ? 0 : AIR, wide = right - left || 1, tall = high - low || 1;
  let sx = (width * (1 - 2 * room)) / wide, sy = (height * (1 - 2 * room)) / tall;
  if (!whole) sx = sy = Math.min(sx, sy);
  const x0 = width / 2 - ((left + right) / 2) * sx, y0 = height / 2 + ((low + high) / 2) * sy;
  return { sx, sy, x0, y0, x: (value) => x0 + value * sx, y: (value) => y0 - value * sy };
}

// Points by their colours; `groups`: {colour, places}, `faded` ones behind. A square a point: 10,000 of them in some milliseconds.
export function points(pen, at, { x, y }, groups, few) {
  const radius = few < FEW ? LARGE : RADIUS, side = radius * 2;
  for (const { colour, places } of groups) {
    pen.fillStyle = colour;
    for (const i of places) pen.fillRect(at.x0 + x[i] * at.sx - radius, at.y0 - y[i] * at.sy - radius, side, side);
  }
}

// Around chosen points; many of them have thin ones, which leave their colours to be seen.
export function rings(pen, at, { x, y }, places, colour, paper) {
  const many = places.length > MANY, half = many ? RADIUS + 0.5 : 4;
  for (const [width, stroke] of many ? [[1, colour]] : [[4, paper], [2, colour]]) {
    pen.lineWidth = width;
    pen.strokeStyle = stroke;
    pen.beginPath();
    for (const i of places) pen.rect(at.x0 + x[i] * at.sx - half, at.y0 - y[i] * at.sy - half, half * 2, half * 2);
    pen.stroke();
  }
}

// -- choosing ---------------------------------------------------------------------------------------------------------
// Whether a point lies within a closed polygon [[x, y], ...]: an odd number of edges is to its right.
export function inside(polygon, px, py) {
  let odd = false;
  for (let i = 0, k = polygon.length - 1; i < polygon.length; k = i++) {
    const [xi, yi] = polygon[i], [xk, yk] = polygon[k];
    if (yi > py !== yk > py && px < ((xk - xi) * (py - yi)) / (yk - yi) + xi) odd = !odd;
  }
  return odd;
}

// The places of the points within a polygon of the canvas.
export function within(polygon, at, { x, y }) {
  const found = [];
  for (let i = 0; i < x.length; i++) if (inside(polygon, at.x(x[i]), at.y(y[i]))) found.push(i);
  return found;
}

// The place of the point nearest to one of the canvas, at most so many pixels away; -1 for none.
export function nearest(px, py, at, { x, y }, most) {
  let [best, least] = [-1, most * most];
  for (let i = 0; i < x.length; i++) {
    const square = (at.x(x[i]) - px) ** 2 + (at.y(y[i]) - py) ** 2;
    if (square <= least) [best, least] = [i, square];
  }
  return best;
}

// -- colours ----------------------------------------------------------------------------------------------------------
// Colours of classes: the series of the page, and beyond these a circle of hues, lighter on dark paper.
export function hues(count, colours, series) {
  if (count <= series.length) return series.slice(0, count).map((name) => colours[name]);
  const dark = numbers(colours.surface)[0] < 128;
  return Array.from({ length: count }, (_, i) => rgb((i * 360) / count + 20, dark ? 0.62 : 0.68, dark ? 0.66 : (i % 2 ? 0.34 : 0.46)));
}

function rgb(hue, saturation, light) {
  const part = (n) => {
    const k = (n + hue / 30) % 12;
    return Math.round(255 * (light - saturation * Math.min(light, 1 - light) * Math.max(-1, Math.min(k - 3, 9 - k, 1))));
  };
  return `rgb(${part(0)}, ${part(8)}, ${part(4)})`;
}

// A colour between two, of `count` steps.
export function ramp(from, to, count) {
  const [a, b] = [numbers(from), numbers(to)];
  return Array.from({ length: count }, (_, i) => `rgb(${a.map((value, k) => Math.round(value + (b[k] - value) * (i / Math.max(1, count - 1)))).join(", ")})`);
}

// -- decisions --------------------------------------------------------------------------------------------------------
const STRONG = 150; // of 255: how much a sure answer covers the paper

// The pixels of a surface, from the greatest of the second input down: each class in its colour as far as it is sure.
export function surfacePixels(shares, { size, classes }, shown) {
  const data = new Uint8ClampedArray(size * size * 4), of = shown.map(numbers);
  for (let row = 0; row < size; row++) {
    for (let column = 0; column < size; column++) {
      const from = ((size - 1 - row) * size + column) * classes, to = (row * size + column) * 4;
      if (classes === 1) {
        const share = shares[from] / 255;
        for (let k = 0; k < 3; k++) data[to + k] = of[0][k] + (of[1][k] - of[0][k]) * share;
        data[to + 3] = 40 + Math.abs(share - 0.5) * 2 * (STRONG - 40);
        continue;
      }
      let [sum, most] = [0, 0];
      for (let c = 0; c < classes; c++) { sum += shares[from + c]; most = Math.max(most, shares[from + c]); }
      for (let k = 0; k < 3; k++) {
        let mix = 0;
        for (let c = 0; c < classes; c++) mix += of[c][k] * shares[from + c];
        data[to + k] = mix / (sum || 1);
      }
      data[to + 3] = 24 + ((most / 255 - 1 / classes) / (1 - 1 / classes)) * (STRONG - 24);
    }
  }
  return data;
}
