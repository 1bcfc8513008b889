// Choose a row of the data by its number: the keyboard's way to a sample.
import { html } from "../lib.js";
import { parsed } from "../numbers.js";
import { t } from "../words.js";

// The split that is wanted, if there is one of that name; else the rows that are not trained on.
export const splitFor = (splits, wanted) => (wanted in splits ? wanted : "validation" in splits ? "validation" : (Object.keys(splits)[0] ?? ""));

// `at`: the number of the row, null for none yet; go(row); pick(split), if it may be chosen.
export function Picker({ split, splits, at, go, pick = null }) {
  const to = (row) => go(((row % splits[split]) + splits[split]) % splits[split]);
  return html`<div class="row picker">${pick && Object.keys(splits).length > 1 ? html`<select aria-label=${t("data.split")} value=${split} onChange=${(event) => pick(event.target.value)}>${Object.keys(splits).map((name) => html`<option key=${name} value=${name}>${name}</option>`)}</select>` : null}
    <button type="button" class="icon text" aria-label=${t("try.before")} disabled=${at === null} onClick=${() => to(at - 1)}>‹</button>
    <input type="text" inputmode="numeric" aria-label=${t("try.row", { split })} value=${at ?? ""} placeholder="0" onChange=${(event) => { const n = parsed(event.target.value); if (n !== null) to(Math.round(n)); }} />
    <button type="button" class="icon text" aria-label=${t("try.after")} onClick=${() => to(at === null ? 0 : at + 1)}>›</button></div>`;
}
