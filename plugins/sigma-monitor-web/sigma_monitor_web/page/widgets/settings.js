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

export function Settings({ component, fields, change, more, changeMore }) {
  const settings = component?.settings;
  if (!settings?.length) {
    return html`<label class="stack">${t("settings.lines")}<textarea rows="3" spellcheck=${false} value=${more} placeholder="top = 5" onInput=${(event) => changeMore(event.target.value)}></textarea></label>`;
  }
  return html`<table class="settings"><tbody>${settings.map((one) => html`<tr key=${one.name}><th scope="row"><label for=${`s-${one.name}`} title=${one.doc || undefined}>${one.name}</label></th>
    <td><input id=${`s-${one.name}`} type="text" autocomplete="off" spellcheck=${false} value=${fields[one.name] ?? ""} placeholder=${one.default === undefined || one.default === null ? "" : String(one.default)}
      onInput=${(event) => change({ ...fields, [one.name]: event.target.value })} /></td></tr>`)}</tbody></table>`;
}
