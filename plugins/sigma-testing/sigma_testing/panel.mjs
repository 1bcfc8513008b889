// Draw a panel without a browser: node panel.mjs PANEL, once empty, then with growing curves, until it is closed.
import { pathToFileURL } from "node:url";

// What the page has and this process lacks: any property, and any result of a call, is the same again.
const stub = new Proxy(function () {}, {
  get: (_, name) => name === Symbol.toPrimitive ? () => 0 : name === Symbol.iterator ? [][Symbol.iterator].bind([]) : name === "then" ? undefined : stub,
  set: () => true, has: () => true, apply: () => stub, construct: () => stub,
});
const tick = setTimeout, timers = new Map(), begin = (call) => { const key = {}; timers.set(key, call); return key; };
const PAGE = ["document", "window", "location", "localStorage", "fetch", "getComputedStyle", "matchMedia", "ResizeObserver", "addEventListener", "removeEventListener"];
for (const name of PAGE) Object.defineProperty(globalThis, name, { value: stub, configurable: true });
for (const name of ["setTimeout", "setInterval", "requestAnimationFrame"]) globalThis[name] = begin;
for (const name of ["clearTimeout", "clearInterval", "cancelAnimationFrame"]) globalThis[name] = (key) => timers.delete(key);

// The hooks, in the order of their calls.
const cells = [], effects = [];
let place = 0, changed = true;
const same = (one, other) => one && other && one.length === other.length && one.every((x, at) => Object.is(x, other[at]));
const cell = (first) => cells[place++] ??= first();
const useReducer = (reduce, given, init) => {
  const own = cell(() => ({ value: init ? init(given) : given }));
  own.send ??= (action) => {
    const next = reduce(own.value, action);
    if (!Object.is(next, own.value)) { own.value = next; changed = true; }
  };
  return [own.value, own.send];
};
const useEffect = (run, needs) => {
  const own = cell(() => ({}));
  if (!same(own.needs, needs)) effects.push(() => { own.end?.(); own.end = run(); });
  own.needs = needs;
};
const hooks = {
  useEffect, useLayoutEffect: useEffect, useReducer,
  useId: () => cell(() => ({ id: `id-${place}` })).id,
  useMemo: (make, needs) => { const own = cell(() => ({})); if (!same(own.needs, needs)) Object.assign(own, { value: make(), needs }); return own.value; },
  useRef: (current) => cell(() => ({ ref: { current } })).ref,
  useState: (first) => useReducer((old, next) => typeof next === "function" ? next(old) : next, undefined, () => typeof first === "function" ? first() : first),
};
const refs = () => new Set(cells.map((own) => own.ref).filter(Boolean));
const html = (parts, ...values) => { const own = refs(); for (const x of values) if (own.has(x)) x.current ??= stub; return { parts, values }; };

// The curves: none at first, then of two branches, ever longer.
let points = 0;
const hears = new Set();
const column = (value) => Float64Array.from({ length: points }, (_, at) => value(at));
const branch = () => ({ iterations: column((at) => 10 * at), epochs: column((at) => at / 2), seconds: column((at) => at / 4), values: column((at) => 2 / (1 + at)), lows: column((at) => 1.9 / (1 + at)), highs: column((at) => 2.1 / (1 + at)) });
const curves = (addresses) => Object.fromEntries(addresses.map((address) => [address, points ? { 0: branch(), 1: branch() } : {}]));
const follow = (addresses, hear) => {
  const own = () => hear(curves(addresses));
  hears.add(own);
  own();
  return () => hears.delete(own);
};
const ask = (what) => what === "get" ? Promise.resolve({}) : new Promise(() => {}); // nothing is published yet; other answers depend on the run

let when = "when it is imported", panel = null;
const fail = (error) => { console.error(`${when}: ${error}`); process.exit(1); };
const draw = () => {
  for (let round = 0; changed && round < 20; round += 1) {
    changed = false;
    place = 0;
    panel({ html, hooks, ask, follow, trainer: "trainer" });
    for (const run of effects.splice(0)) run();
  }
};
process.on("unhandledRejection", fail);
try {
  panel = (await import(pathToFileURL(process.argv[2]))).default;
  when = "when it is drawn";
  draw();
  when = "at an update";
  for (points of [1, 2, 40]) {
    for (const own of [...hears]) own();
    for (const call of [...timers.values()]) call(0);
    changed = true;
    draw();
    await new Promise((go) => tick(go));
  }
  when = "when it is closed";
  for (const own of cells) if (typeof own.end === "function") own.end();
  if (hears.size) throw new Error("it still follows curves. Return the function that follow() returns from its effect.");
} catch (error) { fail(error); }
process.exit();
