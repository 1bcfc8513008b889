// The tokens as colours that a canvas takes: a canvas knows neither custom properties nor light-dark().
const NAMES = ["ink", "ink-2", "ink-3", "line", "edge", "surface", "accent", "accent-soft", "ghost", "bad", "s1", "s2", "s3", "s4", "s5", "s6"];

// Where the system forces its colours, a canvas takes them by name.
const FORCED = { surface: "Canvas", accent: "Highlight", s1: "Highlight", s2: "LinkText", line: "GrayText", ghost: "GrayText" };

let known = null;

export function palette() {
  if (known) return known;
  const probe = document.createElement("span");
  probe.className = "sr";
  document.body.append(probe);
  const family = getComputedStyle(document.body).fontFamily;
  known = { family };
  const forced = matchMedia("(forced-colors: active)").matches;
  for (const name of NAMES) {
    probe.style.setProperty("color", `var(--${name})`);
    known[name] = forced ? (FORCED[name] ?? "CanvasText") : getComputedStyle(probe).color;
  }
  probe.remove();
  return known;
}

export const forgetPalette = () => { known = null; };

export const SERIES = ["s1", "s2", "s3", "s4", "s5", "s6"];
