// Rows of the data as tiles that can be chosen: a picture, the figures of a table, or a text.
import { html, useMemo, useRef } from "../lib.js";
import { Icon } from "../widgets/icon.js";
import { Picture, isInk } from "./paint.js";
import { figure, tick } from "../numbers.js";
import { t } from "../words.js";

const COLUMNS = 6; // figures of a table on a tile

export const word = (label) => (typeof label === "number" ? tick(label) : Array.isArray(label) ? label.map(word).join(", ") : String(label ?? ""));

function Content({ shown, ink }) {
  if (!shown) return html`<span class="blank"></span>`;
  if (shown.picture) return html`<${Picture} picture=${shown.picture} ink=${ink} />`;
  if (shown.text !== undefined) return html`<span class="words">${shown.text}</span>`;
  const values = Object.values(shown.table ?? {}).flat(Infinity);
  return html`<span class="figures">${values.slice(0, COLUMNS).map((value, i) => html`<span key=${i}>${tick(value)}</span>`)}${values.length > COLUMNS ? html`<span>…</span>` : null}</span>`;
}

function about(row, { excluded, given }) {
  const parts = [t("data.row", { n: row.row }), t("data.label", { name: word(given ?? row.label) })];
  if (row.predicted !== null && row.predicted !== undefined) parts.push(t("data.read", { name: word(row.predicted) }));
  if (row.loss !== undefined) parts.push(t("data.loss", { value: figure(row.loss) }));
  if (excluded) parts.push(t("data.excluded"));
  if (given !== undefined) parts.push(t("data.relabelled"));
  return parts.join(", ");
}

function Caption({ row, excluded, given }) {
  const label = word(given ?? row.label), wrong = row.predicted !== null && row.predicted !== undefined && word(row.predicted) !== label;
  if (excluded) return html`<span class="cap" aria-hidden="true"><b>${label}</b><span>${t("data.excluded")}</span></span>`;
  return html`<span class="cap" aria-hidden="true"><span class="says">${given !== undefined ? html`<mark>${label}</mark>` : html`<b>${label}</b>`}${wrong ? html` → <b class="wrong">${word(row.predicted)}</b>` : null}</span>
    ${row.loss === undefined ? null : html`<span>${figure(row.loss)}</span>`}</span>`;
}

const STEPS = { ArrowRight: 1, ArrowLeft: -1 };

// `rows`: {row, label, predicted, loss}; `shown`: what they look like, by number; `edits`: {excluded: Set, labels}.
export function Tiles({ rows, shown, edits, chosen, choose }) {
  const list = useRef(null), last = useRef(0), ink = useMemo(() => isInk(Object.values(shown).map((one) => one.picture).filter(Boolean)), [shown]);
  const wide = Object.values(shown).some((one) => !one.picture);
  const press = (event, i) => {
    const [from, to] = event.shiftKey ? [Math.min(last.current, i), Math.max(last.current, i)] : [i, i], off = chosen.has(rows[i].row), next = new Set(chosen);
    for (let k = from; k <= to; k++) if (off) next.delete(rows[k].row); else next.add(rows[k].row);
    last.current = i;
    choose(next);
  };
  const move = (event, i) => {
    const tiles = [...list.current.querySelectorAll("button")], across = tiles.findIndex((one) => one.offsetTop > tiles[0].offsetTop);
    const step = STEPS[event.key] ?? { ArrowDown: across, ArrowUp: -across }[event.key];
    if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    tiles[i + step]?.focus();
  };
  return html`<ul class=${`rows ${wide ? "wide" : ""}`} ref=${list} aria-label=${t("data.rows")}>${rows.map((row, i) => {
    const excluded = edits.excluded.has(row.row), given = edits.labels[row.row];
    return html`<li key=${row.row}><button class=${`tile ${excluded ? "out" : ""}`} type="button" tabindex=${i === 0 || chosen.has(row.row) ? 0 : -1} aria-pressed=${String(chosen.has(row.row))} title=${t("data.row", { n: row.row })}
      onClick=${(event) => press(event, i)} onKeyDown=${(event) => move(event, i)}><${Content} shown=${shown[row.row]} ink=${ink} /><${Caption} row=${row} excluded=${excluded} given=${given} /><span class="sr">${about(row, { excluded, given })}</span>${chosen.has(row.row) ? html`<${Icon} name="check" class="tick" />` : null}</button></li>`;
  })}</ul>`;
}
