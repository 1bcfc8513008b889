// The workers of a group, a row each: rows a second, shards of a batch, generation, and when the operator has heard of it last.
import { html } from "../lib.js";
import { count, figure } from "../numbers.js";
import { useStore } from "../store.js";
import { t } from "../words.js";

const HEADS = ["number", "rate", "shards", "generation", "seen"];

export function Workers() {
  const workers = Object.entries(useStore((state) => state.status?.trainers?.[state.trainer]?.workers) ?? {});
  return workers.length ? html`<section class="card" aria-labelledby="h-workers"><div class="card-head"><h2 id="h-workers">${t("workers")}</h2></div>
    <div class="table-wrap" tabindex="0" role="group" aria-label=${t("workers")}><table class="list figures"><thead><tr>${HEADS.map((head) => html`<th key=${head} scope="col" class="r">${t(`workers.${head}`)}</th>`)}</tr></thead>
    <tbody>${workers.map(([number, worker]) => html`<tr key=${number}><th scope="row" class="r">${number}</th><td class="r">${count(worker.rate)}</td><td class="r">${count(worker.shards)}</td>
      <td class="r">${count(worker.generation)}</td><td class="r">${figure(worker.seen, 2)}</td></tr>`)}</tbody></table></div></section>` : null;
}
