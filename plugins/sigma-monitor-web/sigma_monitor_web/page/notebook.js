// A run in a cell of a notebook: playback of training, charts, the values at any moment and live values, drawn in a shadow root.
import { html, render } from "./lib.js";
import { announce, speakInto } from "./announce.js";
import { Board } from "./charts/board.js";
import { forgetPalette } from "./charts/palette.js";
import { useCurves } from "./charts/uselanes.js";
import { stop } from "./film.js";
import { bind } from "./notebook/entering.js";
import { Values } from "./notebook/values.js";
import { phase, wording } from "./playback.js";
import { leave, start } from "./session.js";
import { Banner } from "./shell/banner.js";
import { Deck } from "./shell/deck.js";
import { drawIn } from "./stage.js";
import { store } from "./store.js";
import { Knobs } from "./widgets/knobs.js";
import { chooseLanguage, setLanguage, t } from "./words.js";

const DARK = 0.4; // the share of light below which a background is dark

function Cell() {
  useCurves();
  return html`<p class="sr" role="status" aria-live="polite" ref=${speakInto}></p><${Banner} /><${Deck} />
    <section class="view" aria-label=${t("view.train")}><${Board} /><${Values} /><aside class="side" aria-label=${t("steer")}><${Knobs} /></aside></section>`;
}

// Whether what is behind an element is dark: notebooks have themes of their own, whatever the system has.
function isDark(element) {
  for (let at = element; at; at = at.parentElement) {
    const [red, green, blue, alpha = 1] = (getComputedStyle(at).backgroundColor.match(/[\d.]+/g) ?? [0, 0, 0, 0]).map(Number);
    if (alpha > 0) return (0.299 * red + 0.587 * green + 0.114 * blue) / 255 < DARK;
  }
  return matchMedia("(prefers-color-scheme: dark)").matches;
}

// Look as the notebook does, now and whenever its theme changes.
function wear(host) {
  const look = () => {
    const theme = isDark(host.parentElement) ? "dark" : "light";
    if (host.dataset.theme === theme) return;
    host.dataset.theme = theme;
    forgetPalette();
    store.set(({ looks }) => ({ looks: looks + 1 }));
  };
  const watches = [new MutationObserver(look), new ResizeObserver(look)];
  watches[0].observe(document.documentElement, { attributes: true, subtree: false });
  watches[0].observe(document.body, { attributes: true, subtree: false });
  watches[1].observe(host);
  look();
  return () => { for (const watch of watches) watch.disconnect(); };
}

// Say a change of the state of training.
function tell() {
  let last = null;
  return store.subscribe((state) => {
    const now = phase(state);
    if (now !== last) announce(wording(state).filter(Boolean).join(", "));
    last = now;
  });
}

// Draw the run of a model into an element, in these styles; the returned function ends it.
export function draw({ model, el }, styles) {
  const host = document.createElement("div"), shadow = host.attachShadow({ mode: "open" }), cell = document.createElement("div"), sheet = new CSSStyleSheet();
  host.dataset.lmSuppressShortcuts = "true"; // of JupyterLab, whose keys are letters
  host.addEventListener("keydown", (event) => event.stopPropagation());
  sheet.replaceSync(styles);
  shadow.adoptedStyleSheets = [sheet];
  cell.className = "cell";
  shadow.append(cell);
  el.append(host);
  drawIn(shadow);
  bind(model);
  const language = chooseLanguage([...navigator.languages]);
  cell.lang = language;
  setLanguage(language);
  store.set({ trainer: model.get("about").trainer ?? "", language, between: true });
  const ends = [wear(host), tell(), stop, leave];
  render(html`<${Cell} />`, cell);
  start();
  return () => {
    for (const end of ends) end();
    render(null, cell);
    host.remove();
  };
}
