// Labels at the right of a plot: measured, and written on as many lines as they need, so that none is cut. Pure, but for measuring.
import { measure } from "./paint.js";

const SIZE = 13, BOLD = 600, LINE = 18; // pixels
const PADDING = 20; // pixels beside the text
const SHARE = 0.28, NARROWEST = 96, WIDEST = 240; // of the width of a plot that labels may have

export const TARGET = 24; // pixels between targets, as WCAG 2.2 requires

const wide = (text) => measure(text, SIZE, BOLD);

export const roomFor = (width) => Math.min(WIDEST, Math.max(NARROWEST, width * SHARE));

// The parts at which a name may be broken; one that is too long by itself is broken anywhere.
function parts(name, room) {
  return name.split(/(?<=[._ /-])/).flatMap((part) => {
    if (wide(part) <= room) return [part];
    const size = Math.max(1, Math.floor((part.length * room) / wide(part)) - 1);
    return Array.from({ length: Math.ceil(part.length / size) }, (_, i) => part.slice(i * size, (i + 1) * size));
  });
}

// A name and its value on lines that are no wider than `room`.
export function wrapped(name, value, room) {
  const lines = [];
  for (const part of parts(name, room)) {
    if (lines.length && wide(lines.at(-1) + part) <= room) lines[lines.length - 1] += part;
    else lines.push(part);
  }
  if (!value) return lines;
  const last = lines.length ? `${lines.at(-1)} ${value}` : value;
  return lines.length && wide(last) > room ? [...lines, value] : [...lines.slice(0, -1), last];
}

// The lines, width and height of a label; `more` is a second text below it.
export function sized(label, text, more, room) {
  const lines = wrapped(text.name, text.value, room);
  const width = Math.max(...lines.map(wide), more ? measure(more, SIZE, 500) : 0) + PADDING;
  return { ...label, lines, value: text.value, more, width, tall: Math.max(TARGET, lines.length * LINE + (more ? 16 : 0) + 2) };
}
