// The settings of a component as fields: by its list of settings, or as lines of `key = value` where it has none.
import { html } from "../lib.js";
import { t } from "../words.js";

// What was typed as a plain value: a number, a flag, or a text.
export function plain(text) {
  const trimmed = text.trim();
  if (trimmed === "true" || trimmed === "false") return trimmed === "true";
  if (trimmed !== "" && Number.isFinite(Number(trimmed))) return Number(trimmed);
  return trimmed;
}

// The table of a component with those settings that differ from their defaults.
export function tableOf(name, fields, more = "") {
  const made = { type: name };
  for (const [key, text] of Object.entries(fields)) if (text !== "") made[key] = plain(text);
  for (const line of more.split("\n")) {
    const [key, ...rest] = line.split("=");
    if (key.trim() && rest.length) made[key.trim()] = plain(rest.join("=").trim().replace(/^"(.*)"$/, "$1"));
  }
  return made;
}

const COMMON = ["priority", "scope", "on_error", "background", "budget", "over_budget"]; // of every hook: last

// The editable settings: required first, common ones last; tables are left to configuration files.
const sorted = (settings) => settings.filter((one) => typeof one.default !== "object" || one.default === null)
  .sort((a, b) => COMMON.indexOf(a.name) - COMMON.indexOf(b.name) || Boolean(b.required) - Boolean(a.required));

export function Settings({ component, fields, change, more, changeMore }) {
  const settings = sorted(component?.settings ?? []);
  if (!settings.length) {
    return html`<label class="stack">${t("settings.lines")}<textarea rows="3" spellcheck=${false} value=${more} placeholder="top = 5" onInput=${(event) => changeMore(event.target.value)}></textarea></label>`;
  }
  return html`<table class="settings"><tbody>${settings.map((one) => html`<tr key=${one.name}><th scope="row"><label for=${`s-${one.name}`} title=${one.doc || undefined}>${one.name}</label></th>
    <td><${Field} one=${one} value=${fields[one.name] ?? ""} put=${(text) => change({ ...fields, [one.name]: text })} /></td></tr>`)}</tbody></table>`;
}

const usual = ({ default: value, required }) => (value === undefined || value === null ? (required ? t("settings.needed") : "") : typeof value === "object" ? JSON.stringify(value) : String(value));

function Field({ one, value, put }) {
  const own = { id: `s-${one.name}`, required: Boolean(one.required), value };
  const choices = one.choices?.length ? one.choices : one.type === "flag" || typeof one.default === "boolean" ? ["true", "false"] : null;
  if (!choices) return html`<input ...${own} type="text" autocomplete="off" spellcheck=${false} placeholder=${usual(one)} onInput=${(event) => put(event.target.value)} />`;
  return html`<select ...${own} onChange=${(event) => put(event.target.value)}><option value="">${usual(one)}</option>${choices.map((choice) => html`<option key=${choice} value=${String(choice)}>${String(choice)}</option>`)}</select>`;
}
