// What a person does with chosen rows: exclude them, take them back, relabel them; and what rows show.
import { html, useEffect, useState } from "../lib.js";
import { word } from "./rows.js";
import { Fate } from "../widgets/fate.js";
import { request } from "../session.js";
import { command, forget } from "../steer.js";
import { maySteer, useStore } from "../store.js";
import { count, parsed } from "../numbers.js";
import { t } from "../words.js";

// The pictures, figures or texts of some rows by number, as they come.
export function useShown(trainer, split, wanted) {
  const key = `${trainer} ${split} ${wanted.join()}`, [shown, show] = useState({});
  useEffect(() => {
    if (!wanted.length) return undefined;
    let here = true;
    request("rows", { trainer, split, rows: wanted }).then((found) => { if (here) show(Object.fromEntries(found.map((one) => [one.row, one]))); }, () => {});
    return () => { here = false; };
  }, [key]);
  return shown;
}

// The actions on the selected rows, with the result of the last command.
export function Actions({ chosen, clear, split, classes, edits, place = "data" }) {
  const [label, relabel] = useState(""), steers = useStore(maySteer), fate = useStore((state) => state.fates[place]), rows = [...chosen].sort((a, b) => a - b);
  const out = rows.filter((row) => edits.excluded.has(row)), inside = rows.filter((row) => !edits.excluded.has(row));
  const act = (name, more) => command(name, { split, ...more }, place).then((done) => { if (done) clear(); });
  const value = classes.length ? classes[Number(label)] : parsed(label);
  const renamed = rows.filter((row) => edits.labels[row] !== undefined);
  if (!rows.length && !fate) return html`<p class="acts note">${t("data.how")}</p>`;
  return html`<div class="acts"><div class="row">${rows.length ? html`<b>${t("data.chosen", { n: count(rows.length) })}</b>` : null}
    ${inside.length ? html`<button class="primary" type="button" disabled=${!steers} onClick=${() => act("exclude", { rows: inside })}>${t("data.exclude")}</button>` : null}
    ${out.length ? html`<button class=${inside.length ? "" : "primary"} type="button" disabled=${!steers} onClick=${() => act("include", { rows: out })}>${t("data.include")}</button>` : null}
    ${rows.length ? html`<label class="inline">${t("data.relabel.as")}${classes.length ? html`<select value=${label} disabled=${!steers} onChange=${(event) => relabel(event.target.value)}><option value="">…</option>${classes.map((name, i) => html`<option key=${i} value=${i}>${word(name)}</option>`)}</select>` : html`<input class="short" type="text" inputmode="decimal" value=${label} disabled=${!steers} onInput=${(event) => relabel(event.target.value)} />`}</label>
      <button type="button" disabled=${!steers || label === "" || value === null || value === undefined} onClick=${() => act("relabel", { rows, label: value })}>${t("data.relabel")}</button>
      ${renamed.length ? html`<button type="button" class="quiet" disabled=${!steers} onClick=${() => act("relabel", { rows: renamed, label: null })}>${t("data.own")}</button>` : null}
      <button type="button" class="quiet" onClick=${() => { clear(); forget(place); }}>${t("data.none")}</button>` : null}</div>
    ${fate && (!rows.length || fate.state !== "applied") ? html`<${Fate} fate=${fate} />${fate.state === "applied" ? html`<span class="note push">${t("data.acts")}</span>` : null}` : html`<span class="note push">${t("data.acts.journal")}</span>`}</div>`;
}
