// Histograms as ridges, one an epoch that the page has seen, the newest filled. Heights are square roots, so that tails can be seen.
import { html } from "../lib.js";
import { Plot } from "./paint.js";
import { count, figure, tick } from "../numbers.js";
import { t } from "../words.js";

const KEPT = 7, APART = 17, RISE = 40, LEFT = 40, FOOT = 22;
const seen = new Map(); // histograms by address

// Remember the histogram of an epoch in place of an earlier one of the same epoch; return those of the last epochs.
export function remember(key, epoch, histogram) {
  const past = (seen.get(key) ?? []).filter((one) => one.epoch < epoch);
  const all = [...past, { epoch, histogram }].slice(-KEPT);
  seen.set(key, all);
  return all;
}

const ends = (rows) => [Math.min(...rows.map(({ histogram: { edges } }) => edges[0])), Math.max(...rows.map(({ histogram: { edges } }) => edges.at(-1)))];

function line(context, { edges, counts }, place, base, most) {
  context.beginPath();
  counts.forEach((one, i) => {
    const x = place((edges[i] + edges[i + 1]) / 2), y = base - Math.sqrt(one / most) * RISE;
    if (i === 0) context.moveTo(place(edges[0]), base);
    context.lineTo(x, y);
  });
  context.lineTo(place(edges.at(-1)), base);
}

function paint(rows) {
  return (context, width, height, colours) => {
    let [low, high] = ends(rows);
    if (low < 0 && high > 0) [low, high] = [-Math.max(-low, high), Math.max(-low, high)];
    const place = (value) => LEFT + ((value - low) / (high - low || 1)) * (width - LEFT - 2);
    context.font = `11px ${colours.family}`;
    rows.forEach(({ epoch, histogram }, i) => {
      const last = i === rows.length - 1, base = height - FOOT - (rows.length - 1 - i) * APART;
      const density = Math.max(...histogram.counts) || 1;
      line(context, histogram, place, base, density);
      context.fillStyle = last ? colours["accent-soft"] : colours.surface;
      context.fill();
      context.strokeStyle = last ? colours.accent : colours.edge;
      context.lineWidth = last ? 2 : 1;
      context.stroke();
      context.fillStyle = last ? colours.accent : colours["ink-3"];
      context.textAlign = "left";
      context.fillText(count(epoch), 0, base + 1);
    });
    context.fillStyle = colours["ink-3"];
    for (const [value, align] of [[low, "left"], ...(low < 0 && high > 0 ? [[0, "center"]] : []), [high, "right"]]) {
      context.textAlign = align;
      context.fillText(tick(Number(value.toPrecision(2))), place(value), height - 5);
    }
  };
}

export function Ridges({ rows, name }) {
  const newest = rows.at(-1), [low, high] = ends([newest]);
  const label = t("network.ridges", { name, epoch: count(newest.epoch), low: figure(low), high: figure(high), n: rows.length });
  return html`<${Plot} height=${KEPT * APART + RISE + FOOT} paint=${paint(rows)} of=${newest.histogram} label=${label} />`;
}
