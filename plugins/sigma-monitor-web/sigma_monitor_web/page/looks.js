// Theme and language: as the system has them until a person chooses, then as chosen.
import { forgetPalette } from "./charts/palette.js";
import { memory, store } from "./store.js";
import { chooseLanguage, languageAfter, setLanguage } from "./words.js";

const THEMES = ["system", "light", "dark"];
const FOLLOWED = ["(prefers-color-scheme: dark)", "(forced-colors: active)"]; // wishes of the system, after which colours are others

function wear({ theme, language }) {
  const root = document.documentElement;
  if (theme === "system") root.removeAttribute("data-theme");
  else root.dataset.theme = theme;
  root.lang = language;
  setLanguage(language);
}

// `looks` counts the changes, for all that is painted.
function choose(patch) {
  wear({ ...store.get(), ...patch });
  forgetPalette();
  store.set(({ looks }) => ({ ...patch, looks: looks + 1 }));
}

export function begin() {
  const asked = new URLSearchParams(location.search);
  const language = chooseLanguage([asked.get("language"), memory.get("language", null), ...navigator.languages].filter(Boolean));
  choose({ theme: asked.get("theme") ?? memory.get("theme", "system"), language });
  for (const query of FOLLOWED) matchMedia(query).addEventListener("change", () => choose({}));
}

export function nextTheme() {
  const theme = THEMES[(THEMES.indexOf(store.get().theme) + 1) % THEMES.length];
  memory.set("theme", theme);
  choose({ theme });
}

export function nextLanguage() {
  const language = languageAfter(store.get().language).code;
  memory.set("language", language);
  choose({ language });
}
