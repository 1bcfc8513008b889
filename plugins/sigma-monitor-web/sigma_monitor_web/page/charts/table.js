// The charts as a table of numbers: for screen readers, and for whoever wants the figures.
import { html } from "../lib.js";
import { at } from "../series.js";
import { count, figure } from "../numbers.js";
import { t } from "../words.js";
import { reading } from "./shape.js";

const MOST = 200; // rows
const WIDEST = 24; // series, those in colour first; the values of all others are under "All values", and in the files

// The moments of the rows: those of the curve that was measured most rarely, newest first.
export function moments(shapes) {
  const measured = shapes.flatMap((shape) => shape.items).filter((item) => item.line?.length && item.kind !== "steps");
  const rare = measured.reduce((best, item) => (!best || (item.line.length < best.length && item.line.length > 1) ? item.line : best), null);
  if (!rare) return [];
  const every = Math.max(1, Math.ceil(rare.length / MOST)), rows = [];
  for (let i = rare.length - 1; i >= 0; i -= every) rows.push({ place: rare.x[i], iteration: rare.iteration[i], epoch: rare.epoch[i] });
  return rows;
}

export function Table({ scene, shapes }) {
  const seen = shapes.flatMap((shape) => shape.items.filter((item) => item.line && !item.hidden).map((item) => ({ ...item, share: shape.share })));
  const all = [...new Map(seen.map((item) => [item.entry.address, item])).values()].sort((one, other) => (one.colour === "ghost") - (other.colour === "ghost"));
  const items = all.slice(0, WIDEST);
  const value = (item, place) => {
    const read = at(item.line, item.line.value, place);
    return read ? reading(read.value, item.share, item.kind) : "";
  };
  return html`<div class="table-wrap" id="score-table" tabindex="0" role="group" aria-label=${t("table")}><table class="list figures"><caption class="sr">${t("table.caption")}</caption>
    <thead><tr><th scope="col" class="r">${t("axis.iteration.unit")}</th><th scope="col" class="r">${t("axis.epoch.unit")}</th>
      ${items.map((item) => html`<th key=${item.entry.address} scope="col" class="r"><code>${item.entry.address}</code>${item.share ? ", %" : ""}</th>`)}</tr></thead>
    <tbody>${moments(shapes).map((row) => html`<tr key=${row.iteration}><th scope="row" class="r">${count(row.iteration)}</th><td class="r">${figure(scene.axis.epochAt(row.iteration), 3)}</td>
      ${items.map((item) => html`<td class="r" key=${item.entry.address}>${value(item, row.place)}</td>`)}</tr>`)}</tbody></table>
    ${all.length > items.length ? html`<p class="note pad">${t("table.more", { n: count(all.length - items.length) })}</p>` : null}</div>`;
}
