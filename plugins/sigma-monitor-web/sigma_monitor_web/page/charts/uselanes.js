// The lanes of the user, and the subscriptions that they need.
import { useEffect, useMemo } from "../lib.js";
import { want } from "../session.js";
import { memory, store, useStore } from "../store.js";
import { series, usual } from "./lanes.js";

const key = (name) => `lanes.${name}`;

// A chart of the layout: {patterns, hidden, log, title, tall, bounds, section}.
const lane = ({ log = false, tall = 194, ...more }, i) => ({ id: `l${i}`, log, tall, ...more });

// The lanes by section, each section where its first lane is: [[name, lanes]]; those without one are in "".
export const sections = (lanes) => [...Map.groupBy(lanes, (one) => one.section ?? "")];

// The lanes as a person left them, else those of the layout, else the usual ones; a change is remembered for runs of this name and layout.
export function useLanes() {
  const lanes = useStore((state) => state.lanes), entries = useStore((state) => state.entries);
  const name = useStore((state) => state.hello?.name ?? ""), trainer = useStore((state) => state.trainer);
  const laid = useStore((state) => state.tabs.find((one) => one.view === "train")?.charts), of = JSON.stringify(laid ?? null);
  const put = (next) => { store.set({ lanes: next }); memory.set(key(`${name}.${trainer}`), { of, lanes: next }); };
  const left = name ? memory.get(key(`${name}.${trainer}`), null) : null;
  const kept = JSON.stringify(left?.of === of ? left.lanes : null);
  const chosen = useMemo(() => lanes ?? JSON.parse(kept) ?? laid?.map(lane) ?? null, [lanes, kept, of]);
  const usually = useMemo(() => usual(entries, trainer), [entries, trainer]), shown = chosen ?? usually, now = () => store.get().lanes ?? shown;
  return {
    lanes: shown,
    chosen, // null: the default ones, which grow with new values
    change: (id, patch) => put(now().map((lane) => (lane.id === id ? { ...lane, ...patch } : lane))),
    remove: (id) => put(now().filter((lane) => lane.id !== id)),
    move: (id, way) => put(moved(now(), now().findIndex((lane) => lane.id === id), way)),
    add: (pattern, log) => put([...now(), { id: `c${Date.now().toString(36)}`, patterns: [pattern], log, tall: 194 }]),
    reset: () => { store.set({ lanes: null }); memory.set(key(`${name}.${trainer}`), null); },
  };
}

function moved(lanes, from, way) {
  const next = [...lanes], to = Math.min(lanes.length - 1, Math.max(0, from + way));
  next.splice(to, 0, ...next.splice(from, 1));
  return next;
}

// Subscribe to the curves of all lanes in every view: the journal finds previous settings in them.
export function useCurves() {
  const { lanes } = useLanes(), entries = useStore((state) => state.entries), trainer = useStore((state) => state.trainer);
  const addresses = [...new Set(lanes.flatMap((lane) => series(lane, entries, trainer).map((entry) => entry.address)))];
  useEffect(() => { want(addresses); }, [addresses.join(" ")]);
}
