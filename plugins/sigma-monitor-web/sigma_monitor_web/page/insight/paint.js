// Pictures on a canvas: shades as ink, colours as they are, weights blue below 0 and orange above.
import { html, useEffect, useRef } from "../lib.js";
import { palette } from "../charts/palette.js";
import { useStore } from "../store.js";

const DARK = 0.42; // of all pixels on average: below it, a picture is ink on an empty page

// The red, green and blue of a colour; grey for one that has a name, as in forced colours.
export const numbers = (colour) => colour.match(/[\d.]+/g)?.slice(0, 3).map(Number) ?? [128, 128, 128];

export const bytes = (text) => Uint8Array.from(atob(text), (one) => one.charCodeAt(0));

// Whether pictures are drawn as ink: shades that are low nearly everywhere.
export function isInk(pictures) {
  let sum = 0, count = 0;
  for (const { channels: planes, pixels } of pictures) {
    if (planes !== 1) return false;
    for (const one of bytes(pixels)) { sum += one; count++; }
  }
  return count > 0 && sum / count / 255 < DARK;
}

// RGBA of a picture: `ink` is the colour of 1 on nothing, or null for shades as they are.
function shaded({ channels: planes, pixels }, ink) {
  const from = bytes(pixels), to = new Uint8ClampedArray((from.length / planes) * 4);
  for (let i = 0, k = 0; k < to.length; i += planes, k += 4) {
    const [r, g, b] = planes === 3 ? [from[i], from[i + 1], from[i + 2]] : ink ?? [from[i], from[i], from[i]];
    to.set([r, g, b, planes === 1 && ink ? from[i] : 255], k);
  }
  return to;
}

// The mean of the channels of each pixel.
const mixed = (from, planes) => (planes === 1 ? from : Float64Array.from({ length: from.length / planes }, (_, i) => from.subarray(i * planes, (i + 1) * planes).reduce((a, b) => a + b, 0) / planes));

function signed(from, below, above) {
  const to = new Uint8ClampedArray(from.length * 4);
  from.forEach((one, i) => to.set([...(one < 128 ? below : above), Math.min(255, Math.abs(one - 127.5) * 2)], i * 4));
  return to;
}

function put(canvas, width, height, data) {
  canvas.width = width;
  canvas.height = height;
  canvas.getContext("2d").putImageData(new ImageData(data, width, height), 0, 0);
}

// Draw again when the colours change.
const useColours = () => useStore((state) => state.looks);

export function Picture({ picture, ink, label = "" }) {
  const at = useRef(null), colours = useColours();
  useEffect(() => put(at.current, picture.width, picture.height, shaded(picture, ink ? numbers(palette().ink) : null)), [picture.pixels, ink, colours]);
  return html`<canvas class="pixels" ref=${at} role=${label ? "img" : undefined} aria-label=${label || undefined} aria-hidden=${label ? undefined : "true"}></canvas>`;
}

export function Weights({ picture: { pixels, width, height, channels: planes } }) {
  const at = useRef(null), colours = useColours();
  useEffect(() => put(at.current, width, height, signed(mixed(bytes(pixels), planes), numbers(palette().s1), numbers(palette().s2))), [pixels, colours]);
  return html`<canvas class="pixels" ref=${at} aria-hidden="true"></canvas>`;
}

// A canvas that is as wide as its place, painted anew when `of` changes: paint(context, width, height, colours).
export function Plot({ height, paint, of, label }) {
  const at = useRef(null), colours = useColours();
  useEffect(() => {
    const draw = () => {
      const canvas = at.current;
      if (!canvas) return;
      const sharp = devicePixelRatio || 1, width = canvas.clientWidth;
      canvas.width = width * sharp;
      canvas.height = height * sharp;
      canvas.style.setProperty("height", `${height}px`);
      const context = canvas.getContext("2d");
      context.scale(sharp, sharp);
      paint(context, width, height, palette());
    };
    const watching = new ResizeObserver(draw);
    watching.observe(at.current.parentElement);
    draw();
    return () => watching.disconnect();
  }, [of, height, colours]);
  return html`<canvas class="plot-canvas" ref=${at} role="img" aria-label=${label}></canvas>`;
}
