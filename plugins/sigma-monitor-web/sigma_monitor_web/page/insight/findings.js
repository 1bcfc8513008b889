// What the examiner finds in the data, the most severe first; how many rows of each class there are in each split.
import { html, useEffect, useRef } from "../lib.js";
import { useAsked } from "./asking.js";
import { Icon } from "../widgets/icon.js";
import { count } from "../numbers.js";
import { t } from "../words.js";

const SIGNS = { error: "no", warning: "warn", note: "dot" };
const MOST = 40; // classes

const tally = (found) => Object.keys(SIGNS).map((name) => [name, found.filter((one) => one.severity === name).length]).filter(([, n]) => n).map(([name, n]) => t(`severity.${name}.n`, { n })).join(", ");

function Finding({ of }) {
  const { rule, severity, text, examples } = of;
  return html`<li class=${`finding ${severity}`}><${Icon} name=${SIGNS[severity] ?? "dot"} /><div><p><b>${t(`severity.${severity}`)}</b> <code>${rule}</code></p><p>${text}</p>${examples.length ? html`<p class="note">${t("findings.rows", { places: examples.join("; ") })}</p>` : null}</div></li>`;
}

// `again` asks once more, as the profile does.
export function Findings({ trainer, again }) {
  const { result, why } = useAsked("findings", { trainer }, again);
  return html`<section class="card" aria-labelledby="h-findings"><div class="card-head"><h2 id="h-findings">${t("findings")}</h2><span class="note">${result ? tally(result) : ""}</span></div>
    ${why ? html`<p class="empty">${t("findings.none", { why })}</p>` : !result ? html`<p class="empty">${t("findings.waits")}</p>` : result.length ? html`<ul class="findings">${result.map((one, i) => html`<${Finding} key=${i} of=${one} />`)}</ul>` : html`<p class="empty">${t("findings.nothing")}</p>`}</section>`;
}

// Bars are shares of the greatest class of the first split: no inline style is allowed.
function useShares(of) {
  const at = useRef(null);
  useEffect(() => { at.current?.querySelectorAll("[data-share]").forEach((one) => one.style.setProperty("--share", one.dataset.share)); }, [of]);
  return at;
}

export function Splits({ parts, classes }) {
  const splits = Object.keys(parts), names = (classes.names ?? []).slice(0, MOST), first = classes.counts?.[splits[0]] ?? [], most = Math.max(1, ...first), table = useShares(classes);
  if (!splits.length) return null;
  return html`<section class="card" aria-labelledby="h-splits"><div class="card-head"><h2 id="h-splits">${t("profile.splits")}</h2></div>
    <dl class="facts">${splits.map((name) => html`<div key=${name}><dt>${name}</dt><dd>${count(parts[name])}</dd></div>`)}</dl>
    ${names.length ? html`<div class="table-wrap" tabindex="0" role="group" aria-label=${t("balance")}><table class="classes" ref=${table}><thead><tr><th scope="col">${t("data.class")}</th><td></td>${splits.map((name) => html`<th key=${name} scope="col" class="r">${name}</th>`)}</tr></thead>
      <tbody>${names.map((name, i) => html`<tr key=${i}><th scope="row">${name}</th><td class="bar"><i data-share=${first[i] / most}></i></td>${splits.map((split) => html`<td key=${split} class="r">${count(classes.counts[split]?.[i] ?? 0)}</td>`)}</tr>`)}</tbody></table></div>` : null}
    ${(classes.names ?? []).length > MOST ? html`<p class="note pad">${t("and.more", { n: count(classes.names.length - MOST) })}</p>` : null}</section>`;
}
