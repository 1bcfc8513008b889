// Requests of a view that are asked again when what they are about changes, and how often that may be.
import { useEffect, useState } from "../lib.js";
import { request } from "../session.js";
import { ofTrainer, store, useStore } from "../store.js";

const NOTHING = { result: null, why: "" };

export const useOnline = () => useStore((state) => state.connection === "online" && Boolean(state.hello));

// The answer to a request, and why there is none; `more` null asks nothing. A new answer takes the place of the last one at once.
export function useAsked(what, more, again = 0) {
  const online = useOnline(), [found, set] = useState(NOTHING), key = JSON.stringify(more);
  useEffect(() => {
    if (!online || more === null) return undefined;
    let here = true;
    request(what, more).then(
      (result) => { if (here) set({ result, why: "" }); },
      (error) => { if (here && error.kind !== "offline") set({ result: null, why: error.message }); },
    );
    return () => { here = false; };
  }, [what, key, online, again]);
  return found;
}

const present = () => { const now = ofTrainer(store.get()); return now ? `${now.branch}:${now.iteration}` : ""; };

// What changes with the iteration, but no more often than each so many milliseconds.
export function usePace(every) {
  const [at, see] = useState(present);
  useEffect(() => {
    const looking = setInterval(() => see(present()), every);
    return () => clearInterval(looking);
  }, [every]);
  return at;
}

// How often a hook that is attached for this page should be due: after an epoch, or after as many as take some seconds.
const PATIENCE = 2;

export function seldom() {
  const { epoch, second } = ofTrainer(store.get()) ?? {}, n = Math.max(1, Math.ceil((PATIENCE * epoch) / second) || 1);
  return n === 1 ? "1 epoch" : `${n} epochs`;
}

// How many edits of the data the journal tells of: what is about rows is asked again when it grows.
const EDITS = ["exclude", "include", "relabel", "undo", "rewind", "reset"];

export const useEdited = () => useStore((state) => state.journal.findLast?.(([, row]) => EDITS.includes(row.command))?.[0] ?? 0);
