// The state of the page in one place. Curves are too large to be copied: they live in series.js, and `drawn` counts their news.
import { SYSTEM } from "./charts/system.js";
import { useLayoutEffect, useReducer, useRef } from "./lib.js";

const INITIAL = {
  view: "train",
  where: "monitor", // of a run, or "ui": of a directory of runs
  process: null, // the number of the server's process
  panels: [], // of plugins: {name, title, view}
  tabs: [], // of the layout; empty: all views
  person: "", // who has logged in
  login: false, // whether the page asks for a name and a password
  connection: "connecting", // connecting, online, offline, denied, over
  silent: 0, // seconds without a word from the run, once they are many
  trouble: "", // why the page is not told what is new
  hello: null,
  trainer: "",
  status: null, // as the protocol gives it
  speed: null, // iterations a second
  entries: [],
  branches: [],
  periods: null, // of training, once the run has told of them: {branch, second, time, seconds}
  states: [],
  hooks: [],
  journal: [], // [number, row]
  commands: [], // that can be sent: {name, undoable, ...}
  tickets: [],
  messages: [],
  edits: {},
  media: null, // what changes with them, once there are any
  results: {}, // of the summary, once the run has ended: {metrics, baselines, advice}
  drawn: 0, // grows with every new point of a curve
  fates: {}, // of commands given on this page, by where they were given
  language: "en",
  theme: "system",
  looks: 0, // grows with each change of colours, of the page or of the system
  axis: "iteration", // iteration, epoch, clock, time
  logAxis: false, // whether that is logarithmic
  smoothing: 0.9,
  columns: 1, // of charts
  tight: false, // whether the scales of charts end at their values
  folded: [SYSTEM], // names of sections whose charts are folded away
  gauges: {}, // what a person has changed in the charts of the machine, by trainer and chart
  range: null, // [from, to] on the axis while zoomed
  picked: null, // the state that is looked at, and that a rewind would go to
  wished: null, // the iteration that is looked for, if no state of it is kept
  recalls: [], // moments that are computed again, or were: {iteration, epoch, reached, state, why}
  refused: "", // why one cannot be
  between: false, // whether moments between kept states can be picked, too: in a notebook
  playing: false, // whether the film goes on from there
  pace: null, // of the film, in states a second, once a person has chosen it
  pins: [], // moments that are read: {iteration, second}
  values: false, // whether the values of all series are listed
  table: false,
  part: "rows", // of the view of the data: rows, map, profile
  lanes: null, // the charts, once the addresses are known
  spots: {}, // choices within views by "view.name": those that differ from what a view begins with
  awaited: {}, // of a link: {trainer, at, branch}, until the run has told of them
  finding: false, // whether the palette is open
  pinned: [], // addresses of live values that a person asked for
  tried: {}, // by trainer, the sample of "Try it": {own, inputs, picture}
  sample: { from: "row", split: "", row: 0 }, // the sample whose activations are shown
};

export function createStore(first) {
  let state = first;
  const listeners = new Set();
  return {
    get: () => state,
    set(patch) {
      state = { ...state, ...(typeof patch === "function" ? patch(state) : patch) };
      for (const listener of [...listeners]) listener(state);
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

export const store = createStore(INITIAL);
export const pulse = { seen: 0 }; // when the run was last heard, by performance.now()
export const pointer = createStore({ place: null, lane: null, y: null }); // the crosshair's place on the axis, and where in which chart: they change too often for the store

// Redraw a component when its selection changes, compared by identity.
export function useStore(select, from = store) {
  const [, again] = useReducer((n) => n + 1, 0);
  const value = select(from.get());
  const last = useRef(null);
  last.current = { select, value };
  useLayoutEffect(() => from.subscribe((state) => { if (!Object.is(last.current.select(state), last.current.value)) again(); }), []);
  return value;
}

// A choice within a view that its link holds: a text, a number, a flag or null, as `view.name`.
export function useSpot(name, usual) {
  const value = useStore((state) => (name in state.spots ? state.spots[name] : usual));
  return [value, (next) => store.set(({ spots: { [name]: _, ...others } }) => ({ spots: next === usual ? others : { ...others, [name]: next } }))];
}

// Several of them at once, by the names of an object.
export function useSpots(view, usual) {
  const spots = useStore((state) => state.spots), own = (name) => `${view}.${name}`;
  const values = Object.fromEntries(Object.entries(usual).map(([name, value]) => [name, own(name) in spots ? spots[own(name)] : value]));
  const change = (next) => store.set((state) => {
    const others = Object.entries(state.spots).filter(([name]) => !Object.keys(usual).some((one) => own(one) === name));
    const mine = Object.entries(next).filter(([name, value]) => name in usual && value !== usual[name]).map(([name, value]) => [own(name), value]);
    return { spots: Object.fromEntries([...others, ...mine]) };
  });
  return [values, change];
}

export const ENDS = ["finished", "stopped", "pruned", "interrupted", "failed"]; // of a run

// The status of the trainer that is looked at.
export const ofTrainer = (state) => state.status?.trainers?.[state.trainer] ?? null;
export const maySteer = (state) => state.connection === "online" && (state.hello?.scopes ?? []).includes("steer");

// Settings of the page that outlive it, as far as the browser allows.
export const memory = {
  get(key, otherwise) {
    try {
      return JSON.parse(localStorage.getItem(`sigma.${key}`)) ?? otherwise;
    } catch {
      return otherwise; // no storage, or something else was there
    }
  },
  set(key, value) {
    try {
      localStorage.setItem(`sigma.${key}`, JSON.stringify(value));
    } catch {
      // private windows may refuse: the choice lasts as long as the page
    }
  },
};
