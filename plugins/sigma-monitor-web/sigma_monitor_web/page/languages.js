// All languages, each from its file of `words/`, by code: {name, in, locale, words}. A notebook has them without a server.
export const KNOWN = await (await fetch(new URL("words.json", import.meta.url))).json();
