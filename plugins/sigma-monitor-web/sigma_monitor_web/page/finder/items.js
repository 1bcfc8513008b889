// What the palette finds: views, actions, live commands, addresses and runs, each with its texts in all languages.
import { actions, allowed, going, shelved } from "../playback.js";
import { nextLanguage, nextTheme } from "../looks.js";
import { toggle } from "../film.js";
import { store } from "../store.js";
import { exact, figure, title } from "../numbers.js";
import { languageAfter, spellings, t } from "../words.js";

const press = (selector) => () => document.querySelector(selector)?.click();

// Do something on the charts, which may not be there yet.
const onCharts = (act) => () => {
  if (location.hash.split("?")[0] !== "#train") location.hash = "train";
  requestAnimationFrame(act);
};

const toggled = (name) => onCharts(() => store.set((state) => ({ [name]: !state[name] })));
const along = (axis) => onCharts(() => store.set({ axis, range: null }));

// What the button of playback says.
const main = (state) => (shelved(state) ? "do.resume" : going(state) ? "do.pause" : "do.go");

// Rows of [what must be allowed, key of the text, keys, what it does, or what it shows]; a key may depend on the state.
const ACTIONS = [
  ["toggle", main, "Space", actions.toggle],
  ["step", "do.iteration.long", "→", actions.iteration],
  ["step", "do.epoch.long", "⇧ →", actions.epoch],
  ["rewind", "do.rewind.long", "R", press("#rewind-button")],
  [null, "film.play", "P", toggle],
  ["save", "do.save.long", "S", actions.save],
  ["stop", "do.stop.long", "", actions.stop],
  [null, "share.link", "", null, "link"],
  ["steer", "share.read", "", null, "others"],
  [null, "share.again", "", null, "again"],
  [null, "notify.me", "", null, "notify"],
  [null, "find.zoom", "0", onCharts(() => store.set({ range: null }))],
  [null, "find.table", "", toggled("table")],
  [null, "find.values", "", toggled("values")],
  [null, "find.log", "", toggled("logAxis")],
  [null, "find.axis.iteration", "", along("iteration")],
  [null, "find.axis.epoch", "", along("epoch")],
  [null, "find.axis.clock", "", along("clock")],
  [null, "find.axis.time", "", along("time")],
  [null, "find.chart", "", onCharts(press("#add-chart"))],
  [null, "find.theme", "T", nextTheme],
  [null, "find.language", "", nextLanguage],
  [null, "find.keys", "?", press("#keys")],
];

const HANDS = ["pause", "go", "step", "stop", "save"]; // commands that are among the actions

// The text of a key, first as it is shown, then in the other languages.
const texts = (key, values) => [t(key, values), ...spellings(key, values).filter((text) => text !== t(key, values))];

const views = (all) => all.map(({ name }, i) => ({ id: `view.${name}`, kind: "view", texts: texts(`view.${name}`), note: String(i + 1), act: () => { location.hash = name; } }));

function deeds(state) {
  const can = allowed(state), named = (key) => (typeof key === "string" ? key : key(state));
  return ACTIONS.filter(([needs]) => !needs || can[needs])
    .map(([, key, keys, act, shows]) => ({ id: named(key), kind: "action", texts: texts(named(key), { name: languageAfter(state.language).name }), note: keys === "Space" ? t("key.space") : keys, act, shows }));
}

const commands = (state) => (allowed(state).steer ? state.commands.filter(({ name }) => !HANDS.includes(name)) : [])
  .map(({ name, summary }) => ({ id: `command.${name}`, kind: "command", texts: [name, ...(t.has(`did.${name}`) ? spellings(`did.${name}`) : []), summary ?? ""], note: summary, command: name }));

const shown = (value) => (typeof value === "number" ? exact(value) : typeof value === "string" || typeof value === "boolean" ? String(value) : "");

// The latest value of an entry: measured ones are in the status.
export const valueOf = ({ status, trainer }, { address, value }) => {
  const newest = status?.trainers?.[trainer]?.values?.[address];
  return newest === undefined ? shown(value) : figure(newest);
};

const addresses = (state) => state.entries.map((entry) => ({ id: `address.${entry.address}`, kind: "address", texts: [entry.address, title(entry.address)], note: [valueOf(state, entry), entry.unit].filter(Boolean).join(" "), entry }));

const runs = (known) => known.map(([name, called, status]) => ({ id: `run.${name}`, kind: "run", texts: [called || name, name], note: [called ? name : "", t.has(`run.${status}`) ? t(`run.${status}`) : status].filter(Boolean).join(" · "), run: name }));

// All of them, those first that are shown before anything is typed. `known` has the runs as [name, title, status].
export const items = (state, all, known) => [...views(all), ...deeds(state), ...commands(state), ...runs(known), ...addresses(state)];
