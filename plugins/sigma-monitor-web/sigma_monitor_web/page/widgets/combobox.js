// A field with completion: type, choose with the arrows and Enter, or accept the text.
import { html, useId, useRef, useState } from "../lib.js";

const MOST = 12;

// `options(text)` gives [{value, text, note}]; `chosen(value)` receives the choice.
export function Combobox({ id, label, placeholder, options, chosen, hint, class: more = "" }) {
  const [text, type] = useState(""), [at, move] = useState(-1), [open, show] = useState(false);
  const own = useId(), field = useRef(null);
  const found = open ? options(text).slice(0, MOST) : [];
  const take = (value) => {
    if (!value) return;
    chosen(value);
    type("");
    move(-1);
    show(false);
  };
  const keys = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && found.length) {
      event.preventDefault();
      move((at + step + found.length + 1) % (found.length + 1) === found.length ? -1 : (at + step + found.length + 1) % (found.length + 1));
    } else if (event.key === "Enter") {
      event.preventDefault();
      take(at >= 0 ? found[at].value : (found.length === 1 ? found[0].value : text.trim()));
    } else if (event.key === "Escape" && open) {
      event.stopPropagation();
      show(false);
    }
  };
  return html`<div class=${`combo ${more}`}>
    <input id=${id ?? `${own}-field`} ref=${field} type="search" role="combobox" autocomplete="off" spellcheck=${false} placeholder=${placeholder} aria-label=${label}
      aria-expanded=${String(found.length > 0)} aria-controls=${found.length ? `${own}-list` : undefined} aria-autocomplete="list"
      aria-activedescendant=${at >= 0 && found[at] ? `${own}-${at}` : undefined} value=${text}
      onInput=${(event) => { type(event.target.value); move(-1); show(true); }} onFocus=${() => show(true)}
      onBlur=${() => setTimeout(() => show(false), 150)} onKeyDown=${keys} />
    ${hint && !text ? html`<kbd aria-hidden="true">${hint}</kbd>` : null}
    ${found.length ? html`<ul class="options" id=${`${own}-list`} role="listbox" aria-label=${label}>${found.map((option, i) => html`
      <li key=${option.value} id=${`${own}-${i}`} role="option" aria-selected=${String(i === at)} onPointerDown=${(event) => { event.preventDefault(); take(option.value); }}>
        <span>${option.text ?? option.value}</span>${option.note ? html`<small>${option.note}</small>` : null}</li>`)}</ul>` : null}
  </div>`;
}
