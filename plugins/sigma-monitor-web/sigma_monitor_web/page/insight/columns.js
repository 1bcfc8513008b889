// The columns of a table: kinds with their reasons, missing cells, distributions as small charts, and some rows.
import { html } from "../lib.js";
import { Icon } from "../widgets/icon.js";
import { count, figure, percent, tick } from "../numbers.js";
import { t } from "../words.js";

const STEP = 6, TALL = 24; // of a small chart, in its own units
const NAMED = 3; // values of a column that are named

// Counts as bars, without a scale: the text beside them has the figures.
export function Spark({ counts, label }) {
  const most = Math.max(1, ...counts), height = (n) => (n ? Math.max(1, (n / most) * TALL) : 0);
  return html`<svg class="spark" viewBox=${`0 0 ${counts.length * STEP} ${TALL}`} preserveAspectRatio="none" role="img" aria-label=${label}>
    ${counts.map((n, i) => html`<rect key=${i} x=${i * STEP + 0.5} y=${TALL - height(n)} width=${STEP - 1} height=${height(n)} />`)}</svg>`;
}

const spread = ({ minimum, median, maximum }) => `${tick(minimum)} … ${tick(median)} … ${tick(maximum)}`;
const filled = (record) => Object.keys(record ?? {}).length > 0;

// What a column holds, in a few words.
function content(column) {
  if (filled(column.figures)) return spread(column.figures);
  if (filled(column.lengths)) return t("profile.words", { spread: spread(column.lengths) });
  if (column.histogram.length) return "";
  return column.counts.slice(0, NAMED).map(([value, n]) => `${value} (${count(n)})`).join(", ");
}

const bars = (column) => (column.histogram.length ? column.histogram : column.counts.map(([, n]) => n));

function Column({ column }) {
  const counts = bars(column), told = content(column), missing = column.rows ? column.missing / column.rows : 0;
  return html`<tr><th scope="row"><b>${column.name}</b><small>${column.type}</small></th>
    <td class="why"><span class="kind">${t(`kind.${column.kind}`)}</span><small>${column.reason}</small>${column.unsure ? html`<p class="unsure"><${Icon} name="warn" /><span>${column.unsure}</span></p>` : null}</td>
    <td class="r" data-k=${t("profile.missing")}>${column.missing ? html`<b>${percent(missing, missing < 0.1 ? 1 : 0)} %</b>` : html`<span class="none">–</span>`}</td>
    <td class="r" data-k=${t("profile.distinct")}>${column.distinct === null ? "–" : count(column.distinct)}</td>
    <td class="chart">${counts.length > 1 ? html`<${Spark} counts=${counts} label=${t("profile.spark", { name: column.name, n: counts.length })} />` : null}<small>${told}</small></td></tr>`;
}

export function Columns({ found }) {
  const { columns, width } = found;
  return html`<div class="table-wrap" tabindex="0" role="group" aria-label=${t("profile.columns")}><table class="columns"><thead><tr><th scope="col">${t("profile.column")}</th><th scope="col">${t("profile.kind")}</th><th scope="col" class="r">${t("profile.missing")}</th><th scope="col" class="r">${t("profile.distinct")}</th><th scope="col">${t("profile.distribution")}</th></tr></thead>
    <tbody>${columns.map((column) => html`<${Column} key=${column.name} column=${column} />`)}</tbody></table></div>
    ${width > columns.length ? html`<p class="note pad">${t("data.column.more", { n: count(width - columns.length) })}</p>` : null}`;
}

// Some rows as they are in the data, evenly spaced.
export function Samples({ found }) {
  const { columns, samples } = found;
  if (!samples.length || !columns.length || found.pictures.length) return null;
  return html`<section class="card" aria-labelledby="h-samples"><div class="card-head"><h2 id="h-samples">${t("profile.samples")}</h2><span class="note">${t("profile.samples.of", { n: samples.length, all: count(found.rows) })}</span></div>
    <div class="table-wrap samples" tabindex="0" role="group" aria-label=${t("profile.samples")}><table class="list figures"><thead><tr>${columns.map((one) => html`<th key=${one.name} scope="col" class=${filled(one.figures) ? "r" : ""}>${one.name}</th>`)}</tr></thead>
      <tbody>${samples.map((row, i) => html`<tr key=${i}>${row.map((cell, k) => html`<td key=${k} class=${filled(columns[k].figures) ? "r" : ""}>${cell === "" ? html`<span class="none">–</span>` : cell}</td>`)}</tr>`)}</tbody></table></div></section>`;
}

// Lengths of texts: a greater chart of the same bars, with its ends.
export function Lengths({ lengths }) {
  const { shortest, median, longest, usual, histogram } = lengths;
  return html`<section class="card" aria-labelledby="h-lengths"><div class="card-head"><h2 id="h-lengths">${t("profile.lengths")}</h2><span class="note">${t("profile.words", { spread: `${count(shortest)} … ${count(median)} … ${count(longest)}` })}</span></div>
    <div class="lengths"><${Spark} counts=${histogram} label=${t("profile.lengths.label", { low: figure(shortest), middle: figure(median), high: figure(longest) })} /><span aria-hidden="true">0</span><span aria-hidden="true">${count(usual)}</span></div></section>`;
}
