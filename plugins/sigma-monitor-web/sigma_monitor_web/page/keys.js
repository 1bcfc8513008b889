// Keys for everything; they sleep while a field has the focus.
import { store } from "./store.js";
import { actions, allowed } from "./playback.js";
import { toggle } from "./film.js";

const press = (selector) => document.querySelector(selector)?.click();
const focus = (selector) => {
  const found = document.querySelector(selector);
  found?.focus();
  found?.select?.();
};

const KEYS = {
  " ": ["toggle", () => actions.toggle()],
  ArrowRight: ["step", () => actions.iteration()],
  "⇧ArrowRight": ["step", () => actions.epoch()],
  r: ["rewind", () => press("#rewind-button")],
  p: [null, () => toggle()],
  s: ["save", () => actions.save()],
  u: [null, () => actions.undo()],
  l: [null, () => focus("#live-values [data-rate] input")],
  t: [null, () => press("#theme")],
  "/": [null, () => focus("#find-address")],
  "?": [null, () => press("#keys")],
  Escape: [null, () => store.set({ picked: null, wished: null })],
};

const OWN = "input, select, textarea, [contenteditable]";

export function listen(views, go) {
  addEventListener("keydown", (event) => {
    if (palette(event)) return;
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (event.target.closest(OWN) && !gone(event.target)) return leave(event);
    if (event.key === " " && event.target.closest("button, a, summary") && !gone(event.target)) return;
    const known = KEYS[(event.shiftKey && event.key.length > 1 ? "⇧" : "") + event.key] ?? KEYS[event.key.toLowerCase()];
    if (known) return act(event, known);
    const view = /^[1-9]$/.test(event.key) ? views()[event.key - 1] : null;
    if (view) go(view.name);
  });
}

// Ctrl-K and Cmd-K open and close the palette, also while a field has the focus.
function palette(event) {
  const asked = (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "k";
  if (!asked || document.querySelector("dialog[open]:not(#finder)")) return false;
  event.preventDefault();
  store.set(({ finding }) => ({ finding: !finding }));
  return true;
}

// Until the next frame, the focus remains on the button of a dialog that has just been closed.
const gone = (target) => target.closest("dialog:not([open])") !== null;

const leave = (event) => { if (event.key === "Escape") event.target.blur(); };

function act(event, [needs, does]) {
  if (event.key === "Escape") return does();
  event.preventDefault();
  if (!needs || allowed(store.get())[needs]) does();
}
