// The values of media by their keys: asked for a few at a time, and the newest kept.
import { useEffect, useReducer } from "../lib.js";
import { useOnline } from "../insight/asking.js";
import { bytes } from "../insight/paint.js";
import { request } from "../session.js";
import { useStore } from "../store.js";

const MOST = 300, LETTERS = 64_000_000; // values that the page keeps, beside those that it shows, and their letters in base64
const AT_ONCE = 4; // requests that wait for an answer

const known = new Map(); // by trainer and key: {value, why, size}
const shown = new Map(); // how many show each: these stay
const hearing = new Map(); // who waits for each
const queue = [];
let asking = 0;

// What a value shows, from its bytes.
export function read(kind, { type, data }) {
  if (kind === "picture" || kind === "sound") return { src: `data:${type};base64,${data}` };
  const text = new TextDecoder().decode(bytes(data));
  return kind === "text" ? { text } : JSON.parse(text);
}

function next() {
  while (asking < AT_ONCE && queue.length) {
    const { id, trainer, entry } = queue.shift();
    asking += 1;
    request("medium", { trainer, key: entry.key }).then((answer) => ({ value: read(entry.kind, answer), size: answer.data.length }), (error) => ({ why: error.message, again: error.kind === "offline" }))
      .then((found) => {
        asking -= 1;
        keep(id, found);
        next();
      });
  }
}

function keep(id, found) {
  if (!found.again) known.set(id, found);
  forget();
  const heard = hearing.get(id) ?? [];
  hearing.delete(id);
  for (const hear of heard) hear();
}

// Drop the oldest values that nobody shows until the others have room.
function forget() {
  let size = 0;
  for (const one of known.values()) size += one.size ?? 0;
  for (const [id, one] of known) {
    if (known.size <= MOST && size <= LETTERS) return;
    if (shown.has(id)) continue;
    known.delete(id);
    size -= one.size ?? 0;
  }
}

function show(id) {
  shown.set(id, (shown.get(id) ?? 0) + 1);
  return () => { if (shown.get(id) === 1) shown.delete(id); else shown.set(id, shown.get(id) - 1); };
}

// The value of an entry once it is there, and why it is not.
export function useMedium(entry) {
  const trainer = useStore((state) => state.trainer), online = useOnline(), [, again] = useReducer((n) => n + 1, 0);
  const id = entry ? `${trainer} ${entry.key}` : "";
  useEffect(() => (id ? show(id) : undefined), [id]);
  useEffect(() => {
    if (!id || known.has(id) || !online) return;
    if (!hearing.has(id)) {
      hearing.set(id, []);
      queue.push({ id, trainer, entry });
    }
    hearing.get(id).push(again);
    next();
  }, [id, online]);
  return known.get(id) ?? {};
}
