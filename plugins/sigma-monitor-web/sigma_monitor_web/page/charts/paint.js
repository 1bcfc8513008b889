// Painting on a canvas: grids, marks and curves. A pixel's column shows the lowest and the highest of its points, never all of them.
import { upper } from "../series.js";

// A canvas made as sharp as the screen is, and cleared.
export function prepare(canvas, width, height, ratio = devicePixelRatio || 1) {
  const wide = Math.round(width * ratio), high = Math.round(height * ratio);
  if (canvas.width !== wide || canvas.height !== high) Object.assign(canvas, { width: wide, height: high });
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  return pen;
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

// Call `move` with each pixel's column: x, the first, lowest, highest and last y (in pixels, so the lowest value is the greatest y).
function columns(line, values, [from, to], sx, sy, each) {
  let x = NaN, first = 0, least = 0, most = 0, last = 0;
  for (let i = from; i < to; i++) {
    const value = values[i];
    if (!Number.isFinite(value)) {
      if (x === x) each(x, first, least, most, last);
      x = NaN;
      each(NaN);
      continue;
    }
    const at = Math.round(sx(line.x[i])), y = sy(value);
    if (at === x) {
      if (y < least) least = y;
      if (y > most) most = y;
      last = y;
      continue;
    }
    if (x === x) each(x, first, least, most, last);
    x = at;
    first = least = most = last = y;
  }
  if (x === x) each(x, first, least, most, last);
}

export function curve(pen, line, values, span, sx, sy, { colour, width, alpha = 1 }) {
  let drawn = false;
  pen.save();
  Object.assign(pen, { strokeStyle: colour, lineWidth: width, globalAlpha: alpha, lineJoin: span[1] - span[0] > 300 ? "bevel" : "round", lineCap: "butt" });
  pen.beginPath();
  columns(line, values, span, sx, sy, (x, first, least, most, last) => {
    if (x !== x) drawn = false;
    else {
      if (drawn) pen.lineTo(x, first);
      else pen.moveTo(x, first);
      if (most - least > 0.7) { // what is thinner than a line is the line
        pen.lineTo(x, least);
        pen.lineTo(x, most);
        pen.lineTo(x, last);
      }
      drawn = true;
    }
  });
  pen.stroke();
  pen.restore();
}

// The raw values: the range from the lowest to the highest value of each point.
export function band(pen, line, span, sx, sy, { colour, alpha }) {
  const [from, to] = span;
  if (from >= to) return;
  const first = Math.round(sx(line.x[from]));
  const room = Math.max(1, Math.round(sx(line.x[to - 1])) - first + 1);
  const tops = new Float32Array(room).fill(Infinity), bottoms = new Float32Array(room).fill(-Infinity);
  for (let i = from; i < to; i++) {
    const high = sy(line.high[i]), low = sy(line.low[i]), at = Math.round(sx(line.x[i])) - first;
    if (high < tops[at]) tops[at] = high;
    if (low > bottoms[at]) bottoms[at] = low;
  }
  if (!tops.some((high, at) => bottoms[at] - high > 1.5)) return;
  pen.save();
  Object.assign(pen, { fillStyle: colour, globalAlpha: alpha });
  pen.beginPath();
  for (let at = 0; at < room; at++) if (tops[at] < Infinity) pen.lineTo(at + first, tops[at]);
  for (let at = room - 1; at >= 0; at--) if (tops[at] < Infinity) pen.lineTo(at + first, bottoms[at]);
  pen.fill();
  pen.restore();
}

// A value that holds until it is changed.
export function steps(pen, line, values, span, until, sx, sy, { colour, width }) {
  const [from, to] = span;
  if (from >= to) return;
  pen.save();
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

// Where labels stand: pushed apart, kept inside; those without room are left out (they are in the table).
export function apart(labels, gap, low, high) {
  const sorted = [...labels].sort((a, b) => a.y - b.y);
  for (let i = 0; i < sorted.length; i++) sorted[i].y = Math.max(sorted[i].y, i ? sorted[i - 1].y + gap : low);
  const over = sorted.length ? sorted.at(-1).y - high : 0;
  if (over > 0) {
    sorted.at(-1).y = high;
    for (let i = sorted.length - 2; i >= 0; i--) sorted[i].y = Math.min(sorted[i].y, sorted[i + 1].y - gap);
  }
  return sorted.filter((label) => label.y >= low - gap);
}
