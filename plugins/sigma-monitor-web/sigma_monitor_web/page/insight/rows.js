// Rows of the data that are pictures, as tiles that can be chosen; how rows are spoken of.
import { html, useMemo } from "../lib.js";
import { useChoosing } from "./choosing.js";
import { Icon } from "../widgets/icon.js";
import { Picture, isInk } from "./paint.js";
import { Spark } from "./past.js";
import { figure, tick } from "../numbers.js";
import { t } from "../words.js";

export const word = (label) => (typeof label === "number" ? tick(label) : Array.isArray(label) ? label.map(word).join(", ") : String(label ?? ""));

function Content({ shown, ink }) {
  if (!shown) return html`<span class="blank"></span>`;
  return shown.picture ? html`<${Picture} picture=${shown.picture} ink=${ink} />` : null;
}

// What is said of a row.
export function about(row, { excluded, given }) {
  const parts = [t("data.row", { n: row.row }), t("data.label", { name: word(given ?? row.label) })];
  if (row.predicted !== null && row.predicted !== undefined) parts.push(t("data.read", { name: word(row.predicted) }));
  if (row.loss !== undefined) parts.push(t("data.loss", { value: figure(row.loss) }));
  if (row.fact) parts.push(row.fact);
  if (excluded) parts.push(t("data.excluded"));
  if (given !== undefined) parts.push(t("data.relabelled"));
  return parts.join(", ");
}

function Caption({ row, excluded, given }) {
  const label = word(given ?? row.label), wrong = row.predicted !== null && row.predicted !== undefined && word(row.predicted) !== label;
  if (excluded) return html`<span class="cap" aria-hidden="true"><b>${label}</b><span>${t("data.excluded")}</span></span>`;
  return html`<span class="cap" aria-hidden="true"><span class="says">${given !== undefined ? html`<mark>${label}</mark>` : html`<b>${label}</b>`}${wrong ? html`<i>→</i><b class="wrong">${word(row.predicted)}</b>` : null}</span>
    ${row.loss === undefined ? null : html`<span>${figure(row.loss)}</span>`}</span>${row.fact ? html`<${Spark} losses=${row.losses} /><span class="cap fact" aria-hidden="true">${row.fact}</span>` : null}`;
}

// `rows`: {row, label, predicted, loss}; `shown`: their pictures, by number; `edits`: {excluded: Set, labels}.
export function Tiles({ rows, shown, edits, chosen, choose }) {
  const { place, press, move } = useChoosing(rows, chosen, choose), ink = useMemo(() => isInk(Object.values(shown).map((one) => one.picture).filter(Boolean)), [shown]);
  return html`<ul class="rows" ref=${place} aria-label=${t("data.rows")}>${rows.map((row, i) => {
    const excluded = edits.excluded.has(row.row), given = edits.labels[row.row];
    return html`<li key=${row.row}><button class=${`tile ${excluded ? "out" : ""}`} type="button" tabindex=${i === 0 || chosen.has(row.row) ? 0 : -1} aria-pressed=${String(chosen.has(row.row))} title=${t("data.row", { n: row.row })}
      onClick=${(event) => press(event, i)} onKeyDown=${(event) => move(event, i)}><${Content} shown=${shown[row.row]} ink=${ink} /><${Caption} row=${row} excluded=${excluded} given=${given} /><span class="sr">${about(row, { excluded, given })}</span>${chosen.has(row.row) ? html`<${Icon} name="check" class="tick" />` : null}</button></li>`;
  })}</ul>`;
}
