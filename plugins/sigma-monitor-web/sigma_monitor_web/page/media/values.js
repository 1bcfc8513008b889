// The values of media by their keys: asked for a few at a time, and the newest kept.
import { useEffect, useReducer } from "../lib.js";
import { useOnline } from "../insight/asking.js";
import { bytes } from "../insight/paint.js";
import { request } from "../session.js";
import { useStore } from "../store.js";

const MOST = 300; // values that the page keeps
const AT_ONCE = 4; // requests that wait for an answer

const known = new Map(); // by trainer and key: {value, why}
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
    request("medium", { trainer, key: entry.key }).then((answer) => ({ value: read(entry.kind, answer) }), (error) => ({ why: error.message, again: error.kind === "offline" }))
      .then((found) => {
        asking -= 1;
        keep(id, found);
        next();
      });
  }
}

function keep(id, found) {
  if (!found.again) known.set(id, found);
  while (known.size > MOST) known.delete(known.keys().next().value);
  const heard = hearing.get(id) ?? [];
  hearing.delete(id);
  for (const hear of heard) hear();
}

// The value of an entry once it is there, and why it is not.
export function useMedium(entry) {
  const trainer = useStore((state) => state.trainer), online = useOnline(), [, again] = useReducer((n) => n + 1, 0);
  const id = entry ? `${trainer} ${entry.key}` : "";
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
