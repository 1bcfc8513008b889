// What a person says of a run: a star, a name, tags, a note, and whether it is archived.
import { html, useState } from "../lib.js";
import { Icon } from "../widgets/icon.js";
import { Menu } from "../widgets/menu.js";
import { request } from "../session.js";
import { t } from "../words.js";

export function Star({ run, steers, again }) {
  const name = run.title || run.name, on = Boolean(run.starred);
  return html`<button class=${`quiet icon star ${on ? "on" : ""}`} type="button" disabled=${!steers} aria-pressed=${String(on)} aria-label=${t("runs.star", { name })}
    onClick=${() => request("mark", { run: run.name, starred: !on }).then(again, () => {})}><${Icon} name="star" /></button>`;
}

export const Tags = ({ run }) => (run.tags?.length || run.note || run.archived ? html`<span class="tags">${(run.tags ?? []).map((tag) => html`<span class="tag" key=${tag}>${tag}</span>`)}
  ${run.archived ? html`<span class="tag quiet">${t("runs.archived")}</span>` : null}${run.note ? html`<small class="remark">${run.note}</small>` : null}</span>` : null);

function Form({ run, close, again }) {
  const [title, name] = useState(run.title ?? ""), [tags, tag] = useState((run.tags ?? []).join(" ")), [note, write] = useState(run.note ?? ""), [why, say] = useState("");
  const send = (marks) => request("mark", { run: run.name, ...marks }).then(() => { close(); again(); }, (error) => say(error.message));
  const save = (event) => {
    event.preventDefault();
    send({ title, tags: tags.split(/[\s,]+/).filter(Boolean), note });
  };
  return html`<form class="marks" onSubmit=${save}><label class="stack">${t("runs.name")}<input type="text" maxlength="100" value=${title} placeholder=${run.name} onInput=${(event) => name(event.target.value)} /></label>
    <label class="stack">${t("runs.tags")}<input type="text" autocomplete="off" spellcheck=${false} value=${tags} placeholder="baseline paper" onInput=${(event) => tag(event.target.value)} /></label>
    <label class="stack">${t("runs.note")}<textarea rows="3" maxlength="10000" value=${note} onInput=${(event) => write(event.target.value)}></textarea></label>
    <p class="note" role="status">${why}</p>
    <span class="row"><button type="submit">${t("runs.keep")}</button><button class="quiet" type="button" onClick=${() => send({ archived: !run.archived })}>${t(run.archived ? "runs.restore" : "runs.archive")}</button></span></form>`;
}

export const Marks = ({ run, again }) => html`<${Menu} label=${t("runs.marks", { name: run.title || run.name })}>${(close) => html`<${Form} ...${{ run, close, again }} />`}<//>`;
