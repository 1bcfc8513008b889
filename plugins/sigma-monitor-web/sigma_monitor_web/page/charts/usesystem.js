// The charts of the machine: what a person changes in them, and their curves, which are asked for while they are unfolded.
import { useEffect, useMemo } from "../lib.js";
import { alsoWant } from "../session.js";
import { store, useStore } from "../store.js";
import { series } from "./lanes.js";
import { SYSTEM, isSystem, systemLanes } from "./system.js";

// The lanes with those of the machine after them, and how each is changed; those of the machine stay where they are.
export function useSystem(all) {
  const entries = useStore((state) => state.entries), trainer = useStore((state) => state.trainer), own = useStore((state) => state.gauges), language = useStore((state) => state.language);
  const folded = useStore((state) => state.folded.includes(SYSTEM)), mine = useMemo(() => systemLanes(entries, trainer, own), [entries, trainer, own, language]);
  const addresses = folded ? [] : mine.flatMap((lane) => series(lane, entries, trainer).map((entry) => entry.address));
  useEffect(() => (addresses.length ? alsoWant(addresses) : undefined), [addresses.join(" ")]);
  const key = (id) => `${trainer}.${id}`, change = (id, patch) => store.set(({ gauges }) => ({ gauges: { ...gauges, [key(id)]: { ...gauges[key(id)], ...patch } } }));
  return { ...all, lanes: useMemo(() => [...all.lanes, ...mine], [all.lanes, mine]), change: (id, patch) => (isSystem(id) ? change : all.change)(id, patch) };
}
