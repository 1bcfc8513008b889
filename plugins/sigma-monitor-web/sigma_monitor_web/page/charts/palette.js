// The tokens as colours that a canvas takes: a canvas knows neither custom properties nor light-dark().
import { home } from "../stage.js";

const NAMES = ["ink", "ink-2", "ink-3", "line", "edge", "surface", "accent", "accent-soft", "ghost", "bad", "s1", "s2", "s3", "s4", "s5", "s6"];

// Where the system forces its colours, a canvas takes them by name.
const FORCED = { surface: "Canvas", accent: "Highlight", s1: "Highlight", s2: "LinkText", line: "GrayText", ghost: "GrayText" };

// Where colours cannot be told apart, series differ in their dashes too: [pixels drawn, pixels left out, ...] of each.
export const DASHES = { s1: [], s2: [9, 4], s3: [2, 3], s4: [12, 3, 2, 3], s5: [5, 3], s6: [2, 6] };

let known = null;
let printing = false;

// `dash(name)`: the dashes of a series, none while colours tell it.
export function palette() {
  if (known) return known;
  const probe = document.createElement("span");
  probe.className = "sr";
  home().append(probe);
  const family = getComputedStyle(home()).fontFamily;
  const forced = matchMedia("(forced-colors: active)").matches;
  known = { family, dash: (name) => (forced || printing ? DASHES[name] : null) ?? [] };
  for (const name of NAMES) {
    probe.style.setProperty("color", `var(--${name})`);
    known[name] = forced ? (FORCED[name] ?? "CanvasText") : getComputedStyle(probe).color;
  }
  probe.remove();
  return known;
}

export const forgetPalette = () => { known = null; };

// Paper is white, whatever the theme is, and often without colours: `repaint` is called before and after printing.
export function whilePrinting(repaint) {
  const begun = (on) => () => {
    printing = on;
    document.documentElement.classList.toggle("printing", on);
    forgetPalette();
    repaint();
  };
  const [before, after] = [begun(true), begun(false)];
  addEventListener("beforeprint", before);
  addEventListener("afterprint", after);
  return () => { removeEventListener("beforeprint", before); removeEventListener("afterprint", after); };
}

export const SERIES = ["s1", "s2", "s3", "s4", "s5", "s6"];
