// Painting on a canvas: grids, marks and curves. A pixel's column shows the lowest and the highest of its points, never all of them.
import { upper } from "../series.js";
import { palette } from "./palette.js";

// A canvas made as sharp as the screen is, and cleared.
export function prepare(canvas, width, height, ratio = devicePixelRatio || 1) {
  const wide = Math.round(width * ratio), high = Math.round(height * ratio);
  if (canvas.width !== wide || canvas.height !== high) Object.assign(canvas, { width: wide, height: high });
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  return pen;
}

const MEASURED = 4000; // texts whose widths are remembered
const widths = new Map();
let ruler = null;

// The width of a text in pixels.
export function measure(text, size = 12, weight = 400) {
  const font = `${weight} ${size}px ${palette().family}`, key = font + text;
  if (widths.size > MEASURED) widths.clear();
  if (!widths.has(key)) {
    ruler ??= document.createElement("canvas").getContext("2d");
    ruler.font = font;
    widths.set(key, ruler.measureText(text).width);
  }
  return widths.get(key);
}

const crisp = (at) => Math.round(at) + 0.5;

export function write(pen, text, x, y, { colour, paper, family, size = 12, weight = 400, align = "left" }) {
  Object.assign(pen, { font: `${weight} ${size}px ${family}`, textAlign: align, textBaseline: "alphabetic", lineJoin: "round" });
  if (paper) {
    Object.assign(pen, { strokeStyle: paper, lineWidth: 4 });
    pen.strokeText(text, x, y);
  }
  pen.fillStyle = colour;
  pen.fillText(text, x, y);
}

export function rule(pen, x1, y1, x2, y2, colour, { width = 1, dash = [] } = {}) {
  pen.save();
  pen.setLineDash(dash);
  Object.assign(pen, { strokeStyle: colour, lineWidth: width });
  pen.beginPath();
  pen.moveTo(x1, y1);
  pen.lineTo(x2, y2);
  pen.stroke();
  pen.restore();
}

export function grid(pen, ticks, sy, frame, colours) {
  for (const [value, text] of ticks) {
    const y = crisp(sy(value));
    rule(pen, frame.left, y, frame.right, y, colours.line);
    write(pen, text, frame.left - 8, y + 4, { colour: colours["ink-3"], family: colours.family, align: "right" });
  }
}

// A little flag at the top of a dotted line, both through the whole plot.
export function flag(pen, x, height, colours, { left = false, top = 0, size = 8, lower = height } = {}) {
  const colour = left ? colours.ghost : colours["ink-2"], at = crisp(x);
  rule(pen, at, top, at, lower, left ? colours.ghost : colours.edge, { dash: [2, 3] });
  pen.fillStyle = colour;
  pen.beginPath();
  pen.moveTo(at - 0.5, top);
  pen.lineTo(at + size, top);
  pen.lineTo(at + size - size / 3, top + size * 0.44);
  pen.lineTo(at + size, top + size * 0.88);
  pen.lineTo(at - 0.5, top + size * 0.88);
  pen.fill();
}

export function diamond(pen, x, y, size, fill, stroke, width = 1.5) {
  pen.beginPath();
  pen.moveTo(x, y - size);
  pen.lineTo(x + size, y);
  pen.lineTo(x, y + size);
  pen.lineTo(x - size, y);
  pen.closePath();
  filled(pen, fill, stroke, width);
}

export function disc(pen, x, y, radius, fill, stroke, width = 1.5) {
  pen.beginPath();
  pen.arc(x, y, radius, 0, Math.PI * 2);
  filled(pen, fill, stroke, width);
}

function filled(pen, fill, stroke, width) {
  if (fill) {
    pen.fillStyle = fill;
    pen.fill();
  }
  if (stroke) {
    Object.assign(pen, { strokeStyle: stroke, lineWidth: width });
    pen.stroke();
  }
}

// The points of a line that can be seen, with one beyond each edge.
export function visible(line, low, high) {
  const from = Math.max(0, upper(line.x, line.length, low) - 1);
  const to = Math.min(line.length, upper(line.x, line.length, high) + 1);
  return [from, to];
}

// Call `each` with each column of `step` pixels that has points: x, and the first, least, greatest and last value. A value that is not
// finite ends the line: then x is NaN. Only the first point of a column is placed: the others are compared with where it ends.
function columns(line, values, [from, to], sx, step, each) {
  let i = from;
  while (i < to) {
    const first = values[i], x = Math.round(sx(line.x[i]) / step) * step, end = sx.invert(x + step / 2);
    if (!Number.isFinite(first)) {
      each(NaN);
      i += 1;
      continue;
    }
    let least = first, most = first, last = first;
    for (i += 1; i < to && line.x[i] < end && Number.isFinite(values[i]); i++) {
      last = values[i];
      if (last < least) least = last;
      else if (last > most) most = last;
    }
    each(x, first, least, most, last);
  }
}

export function curve(pen, line, values, span, sx, sy, { colour, width, alpha = 1, dash = [], step = 1 }) {
  let drawn = false;
  pen.save();
  pen.setLineDash(dash);
  Object.assign(pen, { strokeStyle: colour, lineWidth: width, globalAlpha: alpha, lineJoin: span[1] - span[0] > 300 ? "bevel" : "round", lineCap: "butt" });
  pen.beginPath();
  columns(line, values, span, sx, step, (x, first, least, most, last) => {
    if (x !== x) {
      drawn = false;
      return;
    }
    const y = sy(first), top = sy(most), bottom = sy(least);
    if (drawn) pen.lineTo(x, y);
    else pen.moveTo(x, y);
    if (bottom - top > 0.7) { // what is thinner than a line is the line
      pen.lineTo(x, top);
      pen.lineTo(x, bottom);
      pen.lineTo(x, sy(last));
    }
    drawn = true;
  });
  pen.stroke();
  pen.restore();
}

// The raw values: the range from the lowest to the highest value of each point.
export function band(pen, line, [from, to], sx, sy, { colour, alpha }) {
  const outline = [];
  for (let i = from; i < to;) {
    const x = Math.round(sx(line.x[i])), end = sx.invert(x + 0.5);
    let least = Infinity, most = -Infinity;
    do {
      if (line.low[i] < least) least = line.low[i];
      if (line.high[i] > most) most = line.high[i];
      i += 1;
    } while (i < to && line.x[i] < end);
    if (most >= least) outline.push([x, sy(most), sy(least)]);
  }
  if (!outline.some(([, top, bottom]) => bottom - top > 1.5)) return;
  pen.save();
  Object.assign(pen, { fillStyle: colour, globalAlpha: alpha });
  pen.beginPath();
  for (const [x, top] of outline) pen.lineTo(x, top);
  for (const [x, , bottom] of outline.reverse()) pen.lineTo(x, bottom);
  pen.fill();
  pen.restore();
}

// A value that holds until it is changed.
export function steps(pen, line, values, span, until, sx, sy, { colour, width, dash = [] }) {
  const [from, to] = span;
  if (from >= to) return;
  pen.save();
  pen.setLineDash(dash);
  Object.assign(pen, { strokeStyle: colour, lineWidth: width, lineJoin: "round", lineCap: "round" });
  pen.beginPath();
  let before = NaN;
  for (let i = from; i < to; i++) {
    if (!Number.isFinite(values[i])) continue;
    const x = sx(line.x[i]), y = sy(values[i]);
    if (before === before) {
      pen.lineTo(x, before);
      if (y !== before) pen.lineTo(x, y);
    } else pen.moveTo(x, y);
    before = y;
  }
  pen.lineTo(Math.max(sx(until), sx(line.x[from])), before);
  pen.stroke();
  pen.restore();
}

export function points(pen, line, values, [from, to], sx, sy, { colour, paper, radius = 3.2 }) {
  for (let i = from; i < to; i++) if (Number.isFinite(values[i])) disc(pen, sx(line.x[i]), sy(values[i]), radius, colour, paper);
}

// Where labels stand: pushed apart, each by its `tall`, kept inside; those without room are left out (they are in the table).
export function apart(labels, gap, low, high) {
  const sorted = labels.map((label) => ({ tall: gap, ...label })).sort((a, b) => a.y - b.y);
  for (let i = 0; i < sorted.length; i++) sorted[i].y = Math.max(sorted[i].y, i ? sorted[i - 1].y + sorted[i - 1].tall : low);
  let bottom = high;
  for (let i = sorted.length - 1; i >= 0; i--) {
    sorted[i].y = Math.min(sorted[i].y, bottom - (i === sorted.length - 1 ? sorted[i].tall - gap : sorted[i].tall));
    bottom = sorted[i].y;
  }
  return sorted.filter((label) => label.y >= low - gap);
}
