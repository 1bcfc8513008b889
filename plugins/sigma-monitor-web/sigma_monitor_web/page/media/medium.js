// One value of media, small in its row or large in the viewer.
import { html } from "../lib.js";
import { Icon } from "../widgets/icon.js";
import { count, duration, figure } from "../numbers.js";
import { t } from "../words.js";

const TALL = 40; // of the box in which a histogram is drawn
const MOST_ROWS = 200, SQUARES = 40; // rows of a table that is shown; rows and columns of one that is drawn small

// The moment of an entry in words.
export const when = (entry) => [t("at.epoch", { n: count(entry.epoch) }), t("at.iteration", { n: count(entry.iteration) }), ...(entry.branch ? [t("branch", { n: entry.branch })] : [])].join(", ");

export const about = (name, entry) => [name, when(entry), entry.caption].filter(Boolean).join(", ");

function Bars({ value: { counts, edges }, label }) {
  const most = Math.max(...counts) || 1, d = counts.map((one, i) => `M${i},${TALL}h.92v${-(one / most) * TALL}h-.92z`).join("");
  const says = t("media.histogram.says", { low: figure(edges[0]), high: figure(edges.at(-1)), most: count(Math.max(...counts)) });
  return html`<svg class="counts" viewBox=${`0 0 ${counts.length} ${TALL}`} preserveAspectRatio="none" role=${label ? "img" : undefined} aria-label=${label ? says : undefined} aria-hidden=${label ? undefined : "true"}><path d=${d} /></svg>`;
}

// How dark a cell is: the share of the largest number, with its root, so that few are seen beside many.
export function heats({ rows, heat }) {
  let most = 0;
  for (const row of rows) for (const cell of row) if (Number.isFinite(cell)) most = Math.max(most, cell);
  return (cell) => (heat && Number.isFinite(cell) && most > 0 && cell > 0 ? Math.sqrt(cell / most) : 0);
}

const darken = (share) => (element) => element?.style.setProperty("--heat", `${Math.round(share * 45)}%`);

// A table that is too small to be read: its cells as squares.
function Squares({ value }) {
  const heat = heats({ ...value, heat: true });
  return html`<span class="squares" aria-hidden="true" ref=${(element) => element?.style.setProperty("--across", String(Math.min(SQUARES, Math.max(1, value.columns.length))))}>${value.rows.slice(0, SQUARES).map((row, y) => row.slice(0, SQUARES).map((cell, x) => html`<i key=${`${y}.${x}`} ref=${darken(heat(cell))}></i>`))}</span>`;
}

function Cells({ value }) {
  const heat = heats(value), shown = value.rows.slice(0, MOST_ROWS);
  return html`<div class="scroll" tabindex="0" role="group" aria-label=${t("table")}><table class="list figures"><thead><tr>${value.columns.map((name, i) => html`<th key=${i} scope="col">${name}</th>`)}</tr></thead>
    <tbody>${shown.map((row, y) => html`<tr key=${y}>${row.map((cell, x) => (x === 0 && typeof cell === "string" ? html`<th key=${x} scope="row">${cell}</th>` : html`<td key=${x} class=${typeof cell === "number" ? "r heat" : ""} ref=${darken(heat(cell))}>${typeof cell === "number" ? figure(cell, 5) : (cell ?? "")}</td>`))}</tr>`)}</tbody></table>
    ${shown.length < value.rows.length ? html`<p class="note">${t("and.more", { n: count(value.rows.length - shown.length) })}</p>` : null}</div>`;
}

// What a row shows of an entry; a text begins with what is known without its bytes.
export function Small({ entry, value }) {
  if (entry.kind === "text") return html`<span class="words">${entry.facts.beginning}</span>`;
  if (entry.kind === "sound") return html`<${Icon} name="play" /><span>${duration(entry.facts.seconds).join(" ")}</span>`;
  if (!value) return html`<span class="bar"></span>`;
  if (entry.kind === "picture") return html`<img src=${value.src} alt="" />`;
  return entry.kind === "table" ? html`<${Squares} value=${value} />` : html`<${Bars} value=${value} />`;
}

export function Large({ name, entry, value }) {
  if (entry.kind === "picture") return html`<img src=${value.src} alt=${about(name, entry)} width=${entry.facts.width} height=${entry.facts.height} />`;
  if (entry.kind === "text") return html`<pre tabindex="0" role="group" aria-label=${about(name, entry)}>${value.text}</pre>`;
  if (entry.kind === "sound") return html`<audio controls src=${value.src} aria-label=${about(name, entry)}></audio>`;
  if (entry.kind === "table") return html`<${Cells} value=${value} />`;
  return html`<${Bars} value=${value} label=${about(name, entry)} /><p class="ends-of"><span>${figure(value.edges[0])}</span><span>${figure(value.edges.at(-1))}</span></p>`;
}
