// Notifications of the browser: of the end, a failure and a plateau of the run, once a person has asked for them.
import { request } from "./session.js";
import { ENDS, memory, ofTrainer, store } from "./store.js";
import { count } from "./numbers.js";
import { t } from "./words.js";

const KEY = "notify";
const SETTLED = ["reduce_on_plateau", "early_stop"]; // hooks whose commands say that a value has settled
const TELLING = ["webhook", "email"]; // hooks that tell so themselves
const UNABLE = "unable"; // kept where a notification could not be shown

// Whether this browser can notify, and may: unsupported, unable, default, granted or denied.
export function permission() {
  if (!window.isSecureContext || !("Notification" in window)) return "unsupported";
  return memory.get(KEY, false) === UNABLE ? UNABLE : Notification.permission;
}

export const wanted = () => memory.get(KEY, false) && permission() === "granted";

// Ask the browser, by a press, or end it: whether notifications are shown from now on.
export async function want(on) {
  const granted = on && permission() !== "unsupported" && (await Notification.requestPermission()) === "granted";
  memory.set(KEY, granted);
  return granted;
}

const bare = (component) => (component ?? "").split(":").at(-1);

const known = {}; // hooks by trainer: the journal tells of all

// Those of the trainer that is looked at are here: ask for those of the others.
function learn({ trainer, hooks, hello }) {
  known[trainer] = hooks;
  for (const other of hello.trainers.filter((one) => one !== trainer)) request("hooks", { trainer: other }).then((found) => { known[other] = found; }, () => {});
}

// What a row of the journal says of a plateau, or null.
export function plateau(row, hooks) {
  const of = (name) => bare(hooks.find((hook) => hook.name === name)?.component);
  if (row.event === "background" && TELLING.includes(of(row.hook)) && row.logged?.length) return row.logged[0];
  if (row.command && row.by && SETTLED.includes(of(row.by))) return t("notify.by", { name: row.by });
  return null;
}

// What is to be told between two states of the page, with the hooks by trainer: [kind, text] each.
export function news(before, now, hooks) {
  const found = [], was = before.status?.status, is = now.status?.status, last = before.journal.at(-1)?.[0] ?? 0;
  if (was && is !== was && ENDS.includes(is)) found.push([is === "failed" ? "failure" : "end", now.status.why || t("notify.at", { at: count(ofTrainer(now)?.iteration) })]);
  if (before.hello && was && now.journal !== before.journal) {
    const texts = now.journal.filter(([number]) => number > last).map(([, row]) => plateau(row, hooks[row.trainer] ?? [])).filter(Boolean);
    if (texts.length) found.push(["plateau", texts[0]]);
  }
  return found;
}

function show(kind, text) {
  const name = store.get().hello?.name ?? "";
  try {
    new Notification(t(`notify.${kind}`, { name }), { body: text, tag: `${name}.${kind}` });
  } catch {
    memory.set(KEY, UNABLE); // a browser that notifies through service workers alone, as those of phones
  }
}

// Tell what happens from now on.
export function watch() {
  let before = store.get();
  store.subscribe((now) => {
    const [was, told] = [before, wanted()];
    before = now;
    if (now.hooks !== was.hooks) learn(now);
    if (told && (was.status !== now.status || was.journal !== now.journal)) for (const [kind, text] of news(was, now, known)) show(kind, text);
  });
}
