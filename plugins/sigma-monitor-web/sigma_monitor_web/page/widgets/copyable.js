// A text to take along: a field, and a button that copies it.
import { html, useEffect, useRef, useState } from "../lib.js";
import { t } from "../words.js";

// Copy a text; where the browser does not allow that, select it in its field.
async function copied(text, field) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    field.focus();
    field.select();
    return document.execCommand("copy");
  }
}

export function Copyable({ label, text, note = "" }) {
  const field = useRef(null), [told, say] = useState("");
  useEffect(() => say(""), [text]);
  const copy = async () => say(t((await copied(text, field.current)) ? "copied.done" : "copied.not"));
  return html`<div class="copyable"><label class="stack">${label}<input ref=${field} type="text" readonly value=${text} onFocus=${(event) => event.target.select()} /></label>
    <button class="primary" type="button" disabled=${!text} onClick=${copy}>${t("copy")}</button><p class="note" role="status">${told || note}</p></div>`;
}
