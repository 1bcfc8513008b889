// Charts as files, one or all of them: the points as CSV, the picture as SVG or PNG.
import { curves } from "../series.js";
import { store } from "../store.js";
import { t } from "../words.js";
import { paintLane } from "./lane.js";
import { prepare, write } from "./paint.js";
import { palette } from "./palette.js";
import { paintRuler } from "./ruler.js";
import { SvgPen } from "./svg.js";
import { paintTimeline, tallness } from "./timeline.js";
import { makeWall } from "./wall.js";

const HEAD = 168; // pixels at the left for titles
const LINE = 18; // pixels
const RULER = 32;
const SHARP = 2;

function download(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

const quoted = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

// When a second of a branch was, in ISO 8601; empty if that is not known.
function timesOf(periods) {
  const wall = makeWall(periods);
  return (branch, second) => (wall && second >= wall.guessed ? new Date(1000 * (wall.origin + wall.at(branch, second))).toISOString() : "");
}

// One row a point and address: nothing is interpolated, branches stay apart.
export function csv(entries) {
  const rows = [["address", "branch", "iteration", "epoch", "seconds", "value", "low", "high", "time"].join(",")], timeAt = timesOf(store.get().periods);
  for (const { address } of entries) {
    for (const [branch, stretch] of curves.get(address)?.branches ?? []) {
      for (let i = 0; i < stretch.length; i++) {
        rows.push([quoted(address), branch, stretch.iteration[i], stretch.epoch[i], stretch.second[i], stretch.value[i], stretch.low[i], stretch.high[i], timeAt(branch, stretch.second[i])].join(","));
      }
    }
  }
  return `${rows.join("\r\n")}\r\n`;
}

// What is drawn below each other: {title, tall, paint, shape}, and the scene that it is drawn in.
function partsOf({ scene, wide, shapes }, one) {
  const of = (shape) => ({ title: shape.title, tall: Math.max(shape.tall, lowest(shape)), paint: (pen) => paintLane(pen, { shape, scene }), shape });
  const ruler = { title: "", tall: RULER, paint: (pen) => paintRuler(pen, scene) };
  if (one) return [of(one), ruler];
  const timeline = scene === wide ? [{ title: t("timeline"), tall: tallness(wide), paint: (pen) => paintTimeline(pen, wide, null) }] : [];
  return [...timeline, ...shapes.map(of), ruler];
}

// How far down the labels of a chart reach: beside it, or where charts are narrow, below each other at its right.
const lowest = (shape) => shape.labels.reduce((most, one, i) => Math.max(most, placeOf(shape, one, i) + one.tall), 0);
const placeOf = (shape, label, i) => (shape.small ? 20 + shape.labels.slice(0, i).reduce((sum, one) => sum + one.tall, 0) : label.y);

function paintAll(pen, parts, { width, height, plot }, colours) {
  pen.fillStyle = colours.surface;
  pen.fillRect(0, 0, width, height);
  let top = 0;
  for (const { title, tall, paint, shape } of parts) {
    pen.save();
    pen.translate(HEAD, top);
    paint(pen);
    if (shape) labels(pen, shape, plot, colours);
    pen.restore();
    write(pen, title, 16, top + 26, { colour: colours.ink, family: colours.family, size: 14, weight: 600 });
    if (shape) write(pen, `${shape.number}${shape.share ? " %" : ""}`, 16, top + 56, { colour: colours.ink, family: colours.family, size: shape.tall < 100 ? 20 : 28, weight: 600 });
    top += tall;
    pen.fillStyle = colours.line;
    pen.fillRect(0, top - 1, width, 1);
  }
}

function labels(pen, shape, { right }, colours) {
  shape.labels.forEach((one, n) => {
    if (one.hidden) return;
    const own = { colour: colours[one.colour], family: colours.family, size: 13, weight: 600 }, y = placeOf(shape, one, n);
    one.lines.forEach((line, i) => write(pen, line, right + 12, y + 4 + i * LINE, own));
  });
}

// The size of the whole picture, and where the labels begin.
function sizeOf({ scene }, parts) {
  const { right, width } = scene.frame, widest = Math.max(0, ...parts.flatMap(({ shape }) => shape?.labels.map((one) => one.width) ?? []));
  return { width: HEAD + Math.max(width, right + widest), height: parts.reduce((sum, part) => sum + part.tall, 0), plot: { right } };
}

export function svg(board, one = null) {
  const parts = partsOf(board, one), size = sizeOf(board, parts), pen = new SvgPen(size.width, size.height);
  paintAll(pen, parts, size, palette());
  return pen.document(`${board.scene.state.hello?.name ?? ""} ${one?.title ?? ""}`.trim());
}

function png(board, one, done) {
  const parts = partsOf(board, one), size = sizeOf(board, parts), canvas = document.createElement("canvas");
  paintAll(prepare(canvas, size.width, size.height, SHARP), parts, size, palette());
  canvas.toBlob(done, "image/png");
}

const plain = (text) => text.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "").toLowerCase();

// Save all charts, or `one` of them. `board`: {scene, wide, shapes, entries}.
export function save(kind, board, one = null) {
  const name = [board.scene.state.hello?.name ?? "run", ...(one ? [one.title] : []), String(board.scene.now)].map(plain).join("-");
  const put = (blob) => download(blob, `${name}.${kind.toLowerCase()}`);
  if (kind === "CSV") put(new Blob([csv(one ? one.items.map((item) => item.entry) : board.entries)], { type: "text/csv" }));
  else if (kind === "SVG") put(new Blob([svg(board, one)], { type: "image/svg+xml" }));
  else png(board, one, put);
}
