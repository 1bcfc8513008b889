// A button that opens a small card beside itself; Escape and a press elsewhere close it.
import { html, useEffect, useId, useRef, useState } from "../lib.js";
import { Icon } from "./icon.js";

export function Menu({ label, icon = "more", text = "", class: more = "", children }) {
  const [open, set] = useState(false);
  const root = useRef(null), button = useRef(null), id = useId();
  const close = () => { set(false); button.current?.focus(); };
  useEffect(() => {
    if (!open) return undefined;
    root.current.querySelector(".menu input, .menu select, .menu button")?.focus();
    const outside = (event) => { if (!event.composedPath().includes(root.current)) set(false); };
    addEventListener("pointerdown", outside);
    return () => removeEventListener("pointerdown", outside);
  }, [open]);
  const keys = (event) => { if (open && event.key === "Escape") { event.stopPropagation(); close(); } };
  return html`<div class=${`menu-root ${more}`} ref=${root} onKeyDown=${keys}>
    <button ref=${button} class=${`quiet ${text ? "" : "icon"}`} type="button" aria-expanded=${String(open)} aria-controls=${open ? id : undefined}
      aria-label=${text ? undefined : label} title=${text ? undefined : label} onClick=${() => set(!open)}>
      ${text ? html`<span>${text}</span>` : null}<${Icon} name=${icon} /></button>
    ${open ? html`<div class="menu" id=${id} role="group" aria-label=${label}>${typeof children === "function" ? children(close) : children}</div>` : null}
  </div>`;
}
