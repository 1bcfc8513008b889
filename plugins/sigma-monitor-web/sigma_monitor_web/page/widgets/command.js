// Any live command by its name, also one of a plugin, with its fields: what the run describes, this can send.
import { html, useState } from "../lib.js";
import { Fate } from "./fate.js";
import { Settings, plain } from "./settings.js";
import { command } from "../steer.js";
import { useStore } from "../store.js";
import { t } from "../words.js";

const PLACE = "command.given";

// What was typed for a field, of its type: the brackets of a list can be left out.
function valueOf(type, text) {
  if (type === "a string") return text;
  if (/^\s*[[{]/.test(text)) {
    try {
      return JSON.parse(text);
    } catch {
      return text; // refused with a reason
    }
  }
  return type === "a list" ? text.split(/[\s,]+/).filter(Boolean).map(plain) : plain(text);
}

// `first`: the name that is chosen to begin with.
export function Command({ close, first = "" }) {
  const known = useStore((state) => state.commands), fate = useStore((state) => state.fates[PLACE]);
  const [name, choose] = useState(first), [fields, change] = useState({});
  const about = known.find((one) => one.name === name), own = fate?.command === name ? fate : null;
  const send = (event) => {
    event.preventDefault();
    const given = about.settings.filter((one) => (fields[one.name] ?? "") !== "").map((one) => [one.name, valueOf(one.type, fields[one.name])]);
    command(name, Object.fromEntries(given), PLACE, name).then((done) => { if (done) close(); });
  };
  return html`<form class="attach" onSubmit=${send}>
    <label class="stack">${t("command.which")}<select value=${name} onChange=${(event) => { choose(event.target.value); change({}); }}><option value="">${t("choose")}</option>
      ${known.map((one) => html`<option key=${one.name} value=${one.name}>${one.name}</option>`)}</select></label>
    ${about ? html`<p class="note">${about.summary}</p>` : null}
    ${about?.settings.length ? html`<${Settings} component=${about} fields=${fields} change=${change} />` : null}
    <button class="primary" disabled=${!about}>${t("command.send")}</button>${own && own.state !== "applied" ? html`<${Fate} fate=${own} />` : null}</form>`;
}
