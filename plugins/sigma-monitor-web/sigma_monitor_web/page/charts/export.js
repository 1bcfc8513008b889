// The charts as files: every point as CSV, the picture as PNG.
import { curves } from "../series.js";
import { t } from "../words.js";
import { labelText, paintLane } from "./lane.js";
import { palette } from "./palette.js";
import { paintTimeline, tallness } from "./timeline.js";
import { write } from "./paint.js";
import { paintRuler } from "./ruler.js";

const HEAD = 152; // pixels at the left for titles
const SHARP = 2;

function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

const quoted = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

// One row a point and address: nothing is interpolated, branches stay apart.
export function csv(entries) {
  const rows = [["address", "branch", "iteration", "epoch", "seconds", "value", "low", "high"].join(",")];
  for (const { address } of entries) {
    for (const [branch, stretch] of curves.get(address)?.branches ?? []) {
      for (let i = 0; i < stretch.length; i++) {
        rows.push([quoted(address), branch, stretch.iteration[i], stretch.epoch[i], stretch.second[i], stretch.value[i], stretch.low[i], stretch.high[i]].join(","));
      }
    }
  }
  return `${rows.join("\r\n")}\r\n`;
}

const fileName = (scene, end) => `${(scene.state.hello?.name ?? "run").replace(/[^\w-]+/g, "-")}-${scene.now}.${end}`;

export const saveCsv = (scene, entries) => save(new Blob([csv(entries)], { type: "text/csv" }), fileName(scene, "csv"));

export function savePng(scene, shapes) {
  const parts = [[t("timeline"), tallness(scene), (canvas) => paintTimeline(canvas, scene, null, SHARP), null],
    ...shapes.map((shape) => [shape.title, shape.tall, (canvas) => paintLane(canvas, { shape, scene }, SHARP), shape]), ["", 32, (canvas) => paintRuler(canvas, scene, SHARP), null]];
  const canvas = document.createElement("canvas"), colours = palette();
  Object.assign(canvas, { width: (HEAD + scene.frame.width) * SHARP, height: parts.reduce((sum, [, tall]) => sum + tall, 0) * SHARP });
  const pen = canvas.getContext("2d");
  pen.scale(SHARP, SHARP);
  pen.fillStyle = colours.surface;
  pen.fillRect(0, 0, canvas.width, canvas.height);
  let top = 0;
  for (const [title, tall, paint, shape] of parts) {
    const part = document.createElement("canvas");
    paint(part);
    pen.drawImage(part, HEAD, top, scene.frame.width, tall);
    write(pen, title, 16, top + 26, { colour: colours.ink, family: colours.family, size: 14, weight: 600 });
    if (shape) labels(pen, shape, scene, top, colours);
    top += tall;
    pen.fillStyle = colours.line;
    pen.fillRect(0, top - 1, HEAD + scene.frame.width, 1);
  }
  canvas.toBlob((blob) => save(blob, fileName(scene, "png")), "image/png");
}

function labels(pen, shape, scene, top, colours) {
  write(pen, `${shape.number}${shape.share ? " %" : ""}`, 16, top + 56, { colour: colours.ink, family: colours.family, size: shape.tall < 100 ? 20 : 28, weight: 600 });
  for (const one of shape.labels) {
    if (!one.hidden) write(pen, labelText(one), HEAD + scene.frame.right + 12, top + one.y + 4, { colour: colours[one.colour], family: colours.family, size: 13, weight: 600 });
  }
}
