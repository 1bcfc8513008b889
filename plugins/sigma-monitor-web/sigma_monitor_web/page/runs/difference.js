// Two runs beside each other: the settings in which they differ, and the commands of each.
import { html, useEffect, useState } from "../lib.js";
import { change, subject } from "../charts/marks.js";
import { request } from "../session.js";
import { count } from "../numbers.js";
import { t } from "../words.js";

export const shown = (value) => (value === null || value === undefined ? "–" : typeof value === "object" ? JSON.stringify(value) : String(value));

const Commands = ({ run, rows }) => html`<div><h3><code>${run}</code></h3>${rows.length ? html`<table class="list figures"><thead><tr><th scope="col" class="r">${t("journal.head.iteration")}</th><th scope="col">${t("journal.head.command")}</th><th scope="col">${t("journal.head.what")}</th><th scope="col">${t("journal.head.change")}</th></tr></thead>
  <tbody>${rows.map((row, i) => html`<tr key=${i}><td class="r">${count(row.iteration)}</td><td><b>${row.command}</b></td><td><code>${subject({ row })}</code></td><td>${change({ row })}</td></tr>`)}</tbody></table>` : html`<p class="note">${t("runs.uncommanded")}</p>`}</div>`;

export function Difference({ one, other }) {
  const [found, set] = useState(null), [why, say] = useState("");
  useEffect(() => {
    let wanted = true;
    set(null);
    say("");
    request("difference", { one, other }).then((answer) => { if (wanted) set(answer); }, (error) => { if (wanted) say(error.message); });
    return () => { wanted = false; };
  }, [one, other]);
  return html`<section class="card" aria-labelledby="h-difference"><div class="card-head"><h2 id="h-difference">${t("runs.difference")}</h2></div>
    ${found ? html`${found.settings.length ? html`<div class="table-wrap" tabindex="0" role="group" aria-label=${t("runs.settings")}><table class="list figures"><thead><tr><th scope="col">${t("runs.setting")}</th>${found.runs.map((run) => html`<th scope="col" key=${run}>${run}</th>`)}</tr></thead>
        <tbody>${found.settings.map(({ name, values }) => html`<tr key=${name}><th scope="row"><code>${name}</code></th>${values.map((value, i) => html`<td key=${i}>${shown(value)}</td>`)}</tr>`)}</tbody></table></div>` : html`<p class="note pad">${t("runs.alike")}</p>`}
      <div class="beside">${found.runs.map((run, i) => html`<${Commands} key=${run} run=${run} rows=${found.commands[i]} />`)}</div>` : html`<p class="empty">${why || t("loading")}</p>`}</section>`;
}
