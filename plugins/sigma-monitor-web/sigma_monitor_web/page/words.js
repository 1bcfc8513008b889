// The texts of the page in its language. Texts of the kernel are not translated.
import { KNOWN } from "./languages.js";

const FIRST = "en"; // that of a browser whose languages have no file

export const LANGUAGES = [FIRST, ...Object.keys(KNOWN).filter((code) => code !== FIRST)];

let current = KNOWN[FIRST];

export const locale = () => current.locale;

export function setLanguage(language) {
  current = KNOWN[language] ?? KNOWN[FIRST];
}

// The first of some languages, as a browser names them, that has a file: `de-AT` is `de` unless it has one of its own.
export const chooseLanguage = (wanted) => wanted.flatMap((one) => [one, one.split("-")[0]]).find((one) => LANGUAGES.includes(one)) ?? FIRST;

// The language after one: its code, its name, and "in English" in its own words.
export function languageAfter(language) {
  const code = LANGUAGES[(LANGUAGES.indexOf(language) + 1) % LANGUAGES.length];
  return { code, name: KNOWN[code].name, into: KNOWN[code].in };
}

// Which of "one|many" a number takes, by the rules of the language; one that is written with signs is many.
const isOne = (n) => Number.isFinite(Number(n)) && new Intl.PluralRules(current.locale).select(Number(n)) === "one";

// A text with its blanks filled in.
function filled(text, values) {
  const [one, many] = text.split("|");
  const chosen = many !== undefined && !isOne(values.n) ? many : one;
  return chosen.replace(/\{(\w+)\}/g, (_, name) => values[name] ?? "");
}

// The text of a key in the language of the page.
export const t = (key, values = {}) => filled(current.words[key] ?? key.split(".").at(-1), values);

// The text of a key in every language.
export const spellings = (key, values = {}) => Object.values(KNOWN).filter(({ words }) => key in words).map(({ words }) => filled(words[key], values));

t.has = (key) => key in KNOWN[FIRST].words;
