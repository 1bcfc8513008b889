// The profile of the data, as `sigma data show` prints it, and what the examiner finds: computed on demand, aside from training.
import { html, useMemo, useState } from "../lib.js";
import { useAsked } from "./asking.js";
import { Columns, Lengths, Samples } from "./columns.js";
import { Findings, Splits } from "./findings.js";
import { Picture, isInk } from "./paint.js";
import { Parts } from "./parts.js";
import { word } from "./rows.js";
import { count } from "../numbers.js";
import { t } from "../words.js";

function Head({ children }) {
  return html`<div class="card-head"><${Parts} /><h2 id="h-profile" class="sr">${t("profile")}</h2>${children}</div>`;
}

// What a table for people holds, of data that are no table.
function Listing({ table }) {
  const shown = table[0].map((name, i) => name !== "" || table.some((row) => row[i].length > 1)); // one letter is a part of a chart
  const [heads, ...rows] = table.map((row) => row.filter((_, i) => shown[i]));
  return html`<div class="table-wrap" tabindex="0" role="group" aria-label=${t("profile")}><table class="list figures"><thead><tr>${heads.map((name, i) => html`<th key=${i} scope="col">${name}</th>`)}</tr></thead>
    <tbody>${rows.map((row, i) => html`<tr key=${i}>${row.map((cell, k) => html`<td key=${k} class=${k ? "" : "lead"}>${cell}</td>`)}</tr>`)}</tbody></table></div>`;
}

function Pictures({ groups }) {
  const ink = useMemo(() => isInk(groups.flatMap((one) => one.pictures)), [groups]);
  if (!groups.length) return null;
  return html`<section class="card" aria-labelledby="h-pictures"><div class="card-head"><h2 id="h-pictures">${t("profile.pictures")}</h2></div>
    <div class="groups">${groups.map(({ label, pictures }) => html`<div key=${label} class="group"><h3>${label || t("profile.unlabelled")}</h3><ul class="tiles">${pictures.map((one, i) => html`<li key=${i}><${Picture} picture=${one} ink=${ink} label=${t("profile.picture", { name: label || t("profile.unlabelled"), n: i + 1 })} /></li>`)}</ul></div>`)}</div></section>`;
}

// What the run's folder tells of data that cannot be opened.
function Known({ trainer }) {
  const columns = useAsked("columns", { trainer }).result ?? {}, classes = useAsked("classes", { trainer }).result ?? [];
  const facts = [...Object.entries(columns), ...(classes.length ? [[t("profile.classes"), classes.map(word)]] : [])].filter(([, all]) => all.length);
  return facts.length ? html`<p class="note pad">${t("profile.known")}</p><dl class="known">${facts.map(([name, all]) => html`<div key=${name}><dt>${name}</dt><dd>${all.slice(0, 60).join(", ")}${all.length > 60 ? `, ${t("and.more", { n: count(all.length - 60) })}` : ""}</dd></div>`)}</dl>` : null;
}

function Found({ found }) {
  const notes = found.notes.filter((text) => !found.columns.some((one) => one.unsure && text.includes(one.unsure)));
  return html`${found.source === "rows" ? html`<p class="note pad">${t("profile.memory")}</p>` : null}${found.columns.length ? html`<${Columns} found=${found} />` : found.table.length > 1 ? html`<${Listing} table=${found.table} />` : null}
    ${notes.length ? html`<ul class="notes">${notes.map((text) => html`<li key=${text}>${text}</li>`)}</ul>` : null}`;
}

export function Profile({ trainer }) {
  const [again, refresh] = useState(0), { result: found, why } = useAsked("profile", again ? { trainer, again: true } : { trainer }, again);
  if (why) return html`<section class="card" aria-labelledby="h-profile"><${Head}><button class="quiet mini push" type="button" onClick=${() => refresh(again + 1)}>${t("data.again")}</button><//><p class="empty">${t("profile.gone", { why })}</p><${Known} trainer=${trainer} /></section>`;
  if (!found) return html`<section class="card" aria-labelledby="h-profile"><${Head} /><p class="empty">${t("profile.waits")}</p></section>`;
  return html`<div class="side"><section class="card" aria-labelledby="h-profile"><${Head}><span class="note">${found.head}</span><button class="quiet mini push" type="button" onClick=${() => refresh(again + 1)}>${t("data.again")}</button><//><${Found} found=${found} /></section>
      <${Pictures} groups=${found.pictures} /><${Samples} found=${found} /></div>
    <div class="side"><${Findings} trainer=${trainer} again=${again} /><${Splits} parts=${found.parts} classes=${found.classes} />${found.lengths ? html`<${Lengths} lengths=${found.lengths} />` : null}</div>`;
}
