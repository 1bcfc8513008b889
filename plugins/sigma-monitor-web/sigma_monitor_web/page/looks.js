// Theme and language: as the system has them until a person chooses, then as chosen.
import { forgetPalette } from "./charts/palette.js";
import { memory, store } from "./store.js";
import { LANGUAGES, setLanguage } from "./words.js";

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
  const spoken = navigator.language.slice(0, 2);
  const language = asked.get("language") ?? memory.get("language", LANGUAGES.includes(spoken) ? spoken : "en");
  choose({ theme: asked.get("theme") ?? memory.get("theme", "system"), language });
  for (const query of FOLLOWED) matchMedia(query).addEventListener("change", () => choose({}));
}

export function nextTheme() {
  const theme = THEMES[(THEMES.indexOf(store.get().theme) + 1) % THEMES.length];
  memory.set("theme", theme);
  choose({ theme });
}

export function nextLanguage() {
  const language = LANGUAGES[(LANGUAGES.indexOf(store.get().language) + 1) % LANGUAGES.length];
  memory.set("language", language);
  choose({ language });
}
