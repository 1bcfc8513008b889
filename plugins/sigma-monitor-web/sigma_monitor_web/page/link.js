// The address of what is seen: view, trainer, axis, zoom, moments and choices, in the hash of the page and back from there.
import { PAST_VIEWS } from "./film.js";
import { kept } from "./playback.js";
import { look } from "./session.js";
import { store } from "./store.js";

const CALM = 120; // milliseconds without a change, after which the address is written
const FIGURES = 12; // of a place on an axis
const MOMENTS = ["train", ...PAST_VIEWS]; // views that show the picked state
const STANDARD = ["iteration", "epoch", "clock", "time"];

const numeric = (text) => (text !== "" && Number.isFinite(Number(text)) ? Number(text) : null);
const places = (values) => values.map((value) => Number(value.toPrecision(FIGURES))).join(",");
const word = (text) => (text === null || text === undefined ? "" : text);

function rangeOf(text) {
  const edges = text.split(",").map(numeric);
  return edges.length === 2 && !edges.includes(null) && edges[0] < edges[1] ? edges : null;
}

// A pinned moment is its iteration, with its second where it was pinned on the clock.
const pinText = ({ iteration, second }) => [iteration, second].filter((value) => value !== undefined).map((value) => places([value])).join("@");

function pinsOf(text) {
  const pins = text.split(",").filter(Boolean).map((one) => one.split("@").map(numeric));
  return pins.filter(([iteration, second]) => iteration !== null && second !== null).map(([iteration, second]) => (second === undefined ? { iteration } : { iteration, second }));
}

// Rows of [name in the address, views, text of the state ("" as usual), change of the state from a text]. `at` and `trainer` wait until
// the page knows the states and the trainers.
const FIELDS = [
  ["trainer", null, ({ trainer, hello }) => (hello && trainer !== hello.trainers[0] ? trainer : ""), (text) => ({ awaited: { trainer: text } })],
  ["axis", ["train"], ({ axis }) => (axis === "iteration" ? "" : axis), (text) => ({ axis: STANDARD.includes(text) ? text : "iteration" })],
  ["log", ["train"], ({ logAxis }) => (logAxis ? "1" : ""), (text) => ({ logAxis: text === "1" })],
  ["zoom", ["train"], ({ range }) => (range ? places(range) : ""), (text) => ({ range: rangeOf(text) })],
  ["pins", ["train"], ({ pins }) => pins.map(pinText).join(","), (text) => ({ pins: pinsOf(text) })],
  ["at", MOMENTS, ({ picked }) => (picked ? String(picked.iteration) : ""), (text) => ({ picked: null, awaited: { at: numeric(text) } })],
  ["branch", MOMENTS, ({ picked }) => word(picked?.branch?.toString()), (text) => ({ awaited: { branch: numeric(text) } })],
  ["part", ["data"], ({ part }) => (part === "rows" ? "" : part), (text) => ({ part: ["map", "profile"].includes(text) ? text : "rows" })],
];

const JOINED = [["%2C", ","], ["%40", "@"], ["%3A", ":"]]; // signs that may stay as they are in a hash
const escaped = (text) => JOINED.reduce((left, [code, sign]) => left.replaceAll(code, sign), encodeURIComponent(text));

// A choice of a view as a text: what reads as JSON is JSON.
const reads = (text) => {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return null; // a plain text
  }
};
const spotText = (value) => (typeof value === "string" && !reads(value) ? value : JSON.stringify(value));
const spotOf = (text) => reads(text)?.value ?? (text === "null" ? null : text);

// The choices of a view: those that differ from what it begins with are in the address.
function spotsOf({ spots }, view) {
  return Object.entries(spots).filter(([name]) => name.startsWith(`${view}.`)).map(([name, value]) => [name.slice(view.length + 1), value]);
}

const viewOf = (hash) => hash.replace(/^#/, "").split("?")[0];

// The hash of what is seen in a view.
export function hashOf(state, view) {
  const fields = FIELDS.filter(([, views]) => !views || views.includes(view)).map(([name, , text]) => [name, text(state)]).filter(([, text]) => text !== "");
  const all = [...fields, ...spotsOf(state, view).map(([name, value]) => [name, spotText(value)])];
  return `#${view}${all.length ? `?${all.map(([name, text]) => `${escaped(name)}=${escaped(text)}`).join("&")}` : ""}`;
}

// The change of the state that a hash asks for: all that it does not name is as usual.
export function stateOf(hash, state) {
  const view = viewOf(hash), given = new URLSearchParams(hash.split("?").slice(1).join("?")), known = FIELDS.map(([name]) => name);
  const patch = { awaited: {} };
  for (const [name, views, , change] of FIELDS) {
    if (views && !views.includes(view)) continue;
    const { awaited, ...more } = change(given.get(name) ?? "");
    Object.assign(patch, more);
    Object.assign(patch.awaited, awaited);
  }
  const others = Object.entries(state.spots).filter(([name]) => !name.startsWith(`${view}.`));
  const named = [...given].filter(([name]) => !known.includes(name) && name !== "token").map(([name, text]) => [`${view}.${name}`, spotOf(text)]);
  return { ...patch, spots: Object.fromEntries([...others, ...named]) };
}

// What waited for the trainers and the states of the run, once they are known.
function settle(state) {
  const { trainer, at, branch } = state.awaited;
  if (trainer !== undefined && state.hello) {
    const wanted = trainer || state.hello.trainers[0];
    if (wanted !== state.trainer && state.hello.trainers.includes(wanted)) look(wanted);
    store.set({ awaited: { at, branch } }); // only now: the states are those of the wanted one
  } else if (trainer === undefined && Number.isFinite(at) && state.states.length) {
    const picked = kept(state).find((one) => one.iteration === at && (branch === null || branch === undefined || (one.branch ?? branch) === branch));
    store.set({ awaited: {}, picked: picked ?? state.picked });
  }
}

let view = () => viewOf(location.hash);
let soon = 0;
let known = ""; // the hash that was read or written last

function write() {
  const hash = hashOf(store.get(), view());
  if (hash !== location.hash && !(location.hash === "" && !hash.includes("?"))) history.replaceState(null, "", hash);
  if (!history.state?.seen) history.replaceState({ seen: true }, "");
  known = location.hash;
}

// One that somebody has gone to, and that has not been read yet, stays.
const writeKnown = () => { if (location.hash === known) write(); };

// A hash that was written before, or that names anything, is what is seen then; the name of a view alone changes the view alone.
function read() {
  if (history.state?.seen || location.hash.includes("?")) store.set((state) => stateOf(location.hash, state));
  write();
}

// Keep the address of the page and what it shows the same from now on. `shown` gives the name of the view that is shown.
export function keep(shown) {
  view = shown;
  if (location.hash.includes("?")) store.set((state) => stateOf(location.hash, state));
  known = location.hash;
  addEventListener("hashchange", read);
  store.subscribe((state) => {
    settle(state);
    clearTimeout(soon);
    soon = setTimeout(writeKnown, CALM);
  });
  store.set({});
}

// The whole link, for somebody else: in a directory of runs it names the run.
export function link(token = "") {
  const url = new URL(location.href), { where, hello } = store.get(), hash = hashOf(store.get(), view());
  if (where === "ui" && hello?.folder) url.searchParams.set("run", hello.folder.split("/").filter(Boolean).at(-1));
  url.hash = token ? `${hash}${hash.includes("?") ? "&" : "?"}token=${token}` : hash;
  return url.href;
}
