// What the network reads as what, and how many rows each class has.
import { useMoment } from "../film.js";
import { html, useEffect, useRef } from "../lib.js";
import { useAsked } from "./asking.js";
import { word } from "./rows.js";
import { count } from "../numbers.js";
import { t } from "../words.js";

const MOST = 40; // classes of a table or a chart

// Put numbers that rules take into the elements of a list: no inline style is allowed.
function useNumbers(name, values) {
  const at = useRef(null);
  useEffect(() => { at.current?.querySelectorAll(`[data-${name}]`).forEach((one) => one.style.setProperty(`--${name}`, one.dataset[name])); }, [values]);
  return at;
}

// Mistakes alone are heat, or the diagonal would drown them.
function Matrix({ found, open, picked }) {
  const { classes, matrix } = found, table = useNumbers("heat", found);
  const most = Math.max(1, ...matrix.flatMap((row, i) => row.filter((_, k) => k !== i)));
  return html`<div class="matrix-wrap" tabindex="0" role="group" aria-label=${t("confusion")}><table class="matrix" ref=${table}><thead><tr><td></td>${classes.map((name) => html`<th key=${name} scope="col">${word(name)}</th>`)}</tr></thead>
    <tbody>${matrix.map((row, i) => html`<tr key=${i}><th scope="row">${word(classes[i])}</th>${row.map((n, k) => html`<td key=${k}>${n ? html`<button type="button" class=${i === k ? "right" : "heat"} data-heat=${i === k ? 0 : Math.sqrt(n / most)} aria-pressed=${String(picked?.[0] === classes[i] && picked?.[1] === classes[k])}
      aria-label=${t("confusion.cell", { n, label: word(classes[i]), read: word(classes[k]) })} onClick=${() => open(classes[i], classes[k])}>${n}</button>` : html`<span aria-label="0">·</span>`}</td>`)}</tr>`)}</tbody></table></div>`;
}

function Head({ id, children, note }) {
  return html`<div class="card-head"><h2 id=${id}>${children}</h2><span class="note">${note}</span></div>`;
}

export function Confusion({ trainer, split, again, open, picked }) {
  const moment = useMoment(), { result, why } = useAsked("confusion", split ? { trainer, split, ...moment } : null, again);
  if (!result) return why ? html`<section class="card" aria-labelledby="h-confusion"><${Head} id="h-confusion">${t("confusion")}<//><p class="empty">${t("confusion.none")}</p></section>` : null;
  return html`<section class="card" aria-labelledby="h-confusion"><${Head} id="h-confusion" note=${t("confusion.of", { split, wrong: count(result.wrong), all: count(result.rows) })}>${t("confusion")}<//>
    ${result.classes.length > MOST ? html`<p class="empty">${t("confusion.many", { n: count(result.classes.length) })}</p>` : html`<${Matrix} found=${result} open=${open} picked=${picked} /><p class="note pad">${t("confusion.how")}</p>`}</section>`;
}

export function Balance({ trainer, split, again }) {
  const { result } = useAsked("balance", split ? { trainer, split } : null, again), bars = useNumbers("share", result);
  if (!result || result.classes.length > MOST) return null;
  const most = Math.max(1, ...result.counts);
  return html`<section class="card" aria-labelledby="h-balance"><${Head} id="h-balance" note=${t("balance.of", { split, own: count(result.rows), all: count(result.rows + result.excluded) })}>${t("balance")}<//>
    <ol class="balance" ref=${bars}>${result.classes.map((name, i) => html`<li key=${i}><i data-share=${result.counts[i] / most}></i><b>${word(name)}</b><span>${count(result.counts[i])}</span></li>`)}</ol></section>`;
}
