// Requests of a view, repeated when their subject changes, and their rate limit.
import { frames } from "../film.js";
import { useEffect, useRef, useState } from "../lib.js";
import { request } from "../session.js";
import { ofTrainer, store, useStore } from "../store.js";

const NOTHING = { result: null, why: "", busy: false };

export const useOnline = () => useStore((state) => state.connection === "online" && Boolean(state.hello));

// The answer to a request, and why there is none; `more` null asks nothing. A new answer takes the place of the last one at once.
// The same is asked again when `again` changes, but not before it is answered: one that takes long must not be asked forever.
// So is the same at another moment, `at`: of those that come meanwhile, the newest is asked next.
// The last answer to another request than `what` has other fields, and is none. Whether an answer is waited for is `busy`, if that is `told`.
export function useAsked(what, more, again = 0, told = false) {
  const online = useOnline(), [found, set] = useState(NOTHING), key = JSON.stringify([what, more]), subject = JSON.stringify([what, more && { ...more, at: undefined }]), now = useRef({ subject: "", busy: "", due: false }).current;
  now.more = more;
  useEffect(() => {
    now.subject = online && more !== null ? subject : "";
    if (!now.subject) return;
    if (now.busy === subject) { now.due = true; return; }
    const ask = () => {
      const asked = now.more, frame = asked.at === undefined ? 0 : 1;
      Object.assign(now, { busy: subject, due: false });
      frames.waiting += frame;
      if (told) set((old) => ({ ...old, what, result: old.what === what ? old.result : null, why: "", busy: true }));
      const heard = (answer) => {
        frames.waiting -= frame;
        if (now.subject !== subject) return;
        now.busy = "";
        if (answer) set((old) => (answer.cancelled ? { ...answer, result: old.result } : answer)); // what was there stays
        if (now.due && !answer?.cancelled) ask();
      };
      request(what, asked).then((result) => heard({ what, result, why: "" }), (error) => heard(error.kind === "offline" ? null : { what, result: null, why: error.message, cancelled: error.kind === "cancelled" }));
    };
    ask();
  }, [what, key, online, again]);
  useEffect(() => () => { now.subject = ""; }, []);
  return found.what === what ? found : NOTHING;
}

const present = () => { const now = ofTrainer(store.get()); return now ? `${now.branch}:${now.iteration}` : ""; };

// What changes with the iteration, but no more often than each so many milliseconds, and not while the page is hidden.
export function usePace(every) {
  const [at, see] = useState(present);
  useEffect(() => {
    const looking = setInterval(() => { if (!document.hidden) see(present()); }, every);
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

// The last edit of the data in the journal, given or in force: it repeats the requests about rows.
const EDITS = ["exclude", "include", "relabel", "undo", "rewind", "reset"];

export const useEdited = () => useStore((state) => state.journal.findLast?.(([, row]) => EDITS.includes(row.command) || row.event === "data")?.[0] ?? 0);
