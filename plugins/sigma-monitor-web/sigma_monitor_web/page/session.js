// What the page asks the server for, and how the answers enter the store.
import { detail, modeOf } from "./charts/axis.js";
import { Connection } from "./connection.js";
import { enter, lockedOut, open, socket, tabs } from "./entering.js";
import { fits } from "./origin.js";
import { curves, pixels, remember, whole } from "./series.js";
import { ENDS, pulse, store } from "./store.js";

const EVERY = 0.25; // seconds between the events that are followed
const PARTING = 20000; // milliseconds after the end of a run for which its server is looked for
const CALM = 150; // milliseconds without zooming, after which more points are asked for
const AGAIN = 1000; // milliseconds after an error until it is subscribed again
const SILENCE = 5000, LISTENING = 500; // milliseconds without a word from the run that are too many; between two looks
const SETTLING = ["set", "undo", "rewind", "reset"];
const LASTING = 2000; // rows of the journal, tickets and messages that the page keeps

let connection = null;
let drawn = []; // addresses of the curves of the charts
const others = new Map(); // and of panels, by who wants them
let wanted = []; // all of them
let unfollow = () => {};
let settle = 0;
let closer = ""; // the part of the axis that was asked for last, and of which curves
let parting = 0;
let listening = 0;

export const request = (what, more) => connection.request(what, more);
export const abandon = (what, why) => connection.abandon(what, why);

// Come in, learn the layout, and open the connection.
export async function start() {
  const server = await enter();
  if (server.denied) return store.set({ connection: "denied", login: server.login, trouble: server.why });
  const laid = await tabs(), { axis = "iteration", log = false, smoothing = 0.9, columns = 1, tight = false } = laid.find((tab) => tab.view === "train") ?? {};
  store.subscribe(magnify);
  addEventListener("resize", widen);
  store.set({ where: server.where ?? "monitor", person: server.person ?? "", process: server.process, panels: server.panels ?? [], tabs: laid, axis, logAxis: log, smoothing, columns, tight });
  connection = new Connection(socket(), { changed, open });
  connection.start();
  listening = setInterval(listen, LISTENING);
  return undefined;
}

// Leave the run: a page ends with its window, a cell of a notebook before.
export function leave() {
  clearInterval(listening);
  clearTimeout(parting);
  removeEventListener("resize", widen);
  connection?.end();
}

// Notice that the run says nothing, although its server is connected, and that it speaks again: it says how it is every two seconds.
function listen() {
  const { connection: now, hello, silent } = store.get(), passed = performance.now() - pulse.seen;
  const seconds = now === "online" && hello && passed > SILENCE ? Math.floor(passed / 1000) : 0;
  if (seconds !== silent) store.set({ silent: seconds });
}

function hear() {
  pulse.seen = performance.now();
  listen();
}

// Reset: the other end has changed.
export const reopen = () => connection.again();

// With the end of a run its own server ends. Another one follows at once, as this page is open; where none does, the page stays as it is.
function changed(state) {
  const over = state === "offline" && store.get().where === "monitor" && ENDS.includes(store.get().status?.status);
  if (over) parting ||= setTimeout(() => connection.end(), PARTING);
  else if (state === "online") parting = clearTimeout(parting) ?? 0;
  store.set({ connection: over ? "over" : state });
  if (state === "online") greet().catch(report);
  else if (state === "offline" && !over) enquire();
}

// Ask whether a connection is refused or ended for want of a cookie.
async function enquire() {
  const locked = await lockedOut();
  if (!locked) return;
  connection.end();
  store.set({ connection: "denied", login: locked.login, trouble: "" });
}

// An error that nobody waits for is a message of the page.
function report(error) {
  if (error.kind !== "offline") store.set(({ messages }) => ({ messages: [...messages, [0, error.message]] }));
}

async function greet() {
  const hello = await request("hello"), status = await request("status");
  const before = store.get().hello;
  if (before && (before.process !== hello.process || before.folder !== hello.folder)) forget();
  const trainer = hello.trainers.includes(store.get().trainer) ? store.get().trainer : (hello.trainers[0] ?? "");
  store.set({ hello, trainer, status });
  hear();
  if (store.get().trainer !== trainer) return; // a link leads to another one, which is looked at
  await lookAround(trainer);
  follow();
}

const lookAround = (trainer) => Promise.all([load("journal", {}).then(refresh), load("branches", { trainer }), load("states", { trainer }), load("commands", {}), load("results", {})]);

function forget() {
  curves.clear();
  asked.clear();
  store.set({ journal: [], tickets: [], messages: [], states: [], recalls: [], branches: [], periods: null, entries: [], hooks: [], fates: {}, results: {}, lanes: null, media: null });
}

// One list; it stays empty if the server has none, and one of a trainer that is no longer looked at is left.
async function load(what, more) {
  const found = await request(what, more).catch((error) => report(error));
  const { trainer } = store.get();
  if (found !== undefined && (more.trainer ?? trainer) === trainer) store.set({ [what]: found });
}

// The addresses and hooks as they are after a change.
export async function refresh() {
  const { trainer } = store.get();
  await Promise.all([load("entries", { pattern: "**" }), load("hooks", { trainer })]);
  rememberFirst();
}

// Settings that nobody has set have their first values.
function rememberFirst() {
  const { journal, entries } = store.get(), set = [...new Set(journal.filter(([, row]) => row.command === "set").map(([, row]) => whole(row)))];
  for (const entry of entries) if (entry.settable && !set.some((pattern) => fits(pattern, entry))) remember(entry.address, entry.value);
}

function refreshSoon() {
  clearTimeout(settle);
  settle = setTimeout(() => refresh(), 300);
}

// Follow the curves of the charts from now on.
export function want(addresses) {
  drawn = addresses;
  gather();
}

// Follow the curves of others as well, until the returned function is called.
export function alsoWant(addresses) {
  const who = Symbol("panel");
  others.set(who, addresses);
  gather();
  return () => { others.delete(who); gather(); };
}

function gather() {
  const all = [...new Set([...drawn, ...[...others.values()].flat()])];
  if (all.length === wanted.length && all.every((one, i) => one === wanted[i])) return;
  wanted = all;
  magnify();
  if (store.get().connection === "online" && store.get().hello) follow();
}

export function look(trainer) {
  unfollow(); // news of the trainer before would be taken for those of this one
  store.set({ trainer, picked: null, wished: null, recalls: [], branches: [], periods: null, states: [], lanes: null, media: null });
  lookAround(trainer).then(follow);
}

// A wider window, or one that is zoomed out, shows more points.
function widen() {
  if (pixels() <= curves.most) return;
  curves.most = pixels();
  closer = "";
  magnify();
  if (store.get().connection === "online" && store.get().hello) follow();
}

// What the page has already is told by cursors and numbers.
function follow() {
  const { journal, messages, tickets, trainer } = store.get(), last = (rows) => rows.at(-1)?.[0] ?? 0;
  unfollow();
  unfollow = connection.subscribe("follow", {
    every: EVERY, trainer, addresses: wanted, after: curves.cursors(wanted), most: curves.most, journal: last(journal), messages: last(messages),
    tickets: tickets.reduce((most, ticket) => (ticket.state === "queued" ? most : Math.max(most, ticket.number)), 0),
  }, take, unfollowed);
}

// While the charts are zoomed, show as many points of that part as of the whole run otherwise.
async function magnify() {
  const { axis } = store.get(), range = detail(store.get()), part = JSON.stringify([range, axis, wanted]);
  if (part === closer) return;
  closer = part;
  await new Promise((resolve) => setTimeout(resolve, CALM)); // until the zooming rests
  if (part !== closer) return;
  const over = ["clock", "time"].includes(modeOf(store.get())) ? "second" : "iteration";
  const answer = range ? await request("series", { addresses: wanted, span: range, over, most: curves.most }).catch(report) : {};
  if (part !== closer || !answer) return;
  curves.magnify(answer);
  store.set(({ drawn: count }) => ({ drawn: count + 1 }));
}

// An error ends the subscription: it is shown until another one has news.
function unfollowed(error) {
  if (error.kind === "offline") return;
  hear();
  store.set({ trouble: error.message });
  setTimeout(follow, AGAIN);
}

const unseen = (old, fresh) => {
  const newest = old.at(-1)?.[0] ?? 0;
  const rows = (fresh ?? []).filter(([n]) => n > newest);
  return rows.length ? [...old, ...rows].slice(-LASTING) : old;
};

// The news since the last event, all at once.
export function take(event) {
  hear();
  const state = store.get();
  const patch = { trouble: "" };
  if (event.status) Object.assign(patch, { status: event.status, speed: speed(state, event.status) });
  if (event.series && curves.take(event.series)) patch.drawn = state.drawn + 1;
  if (event.series && wanted.some((address) => curves.unfit(address))) follow();
  const journal = unseen(state.journal, event.journal);
  if (journal !== state.journal) {
    patch.journal = journal;
    if (event.journal.some(([, row]) => row.command && !["pause", "go", "step", "save"].includes(row.command))) refreshSoon();
  }
  const messages = unseen(state.messages, event.messages);
  if (journal !== state.journal && event.journal.some(([, row]) => SETTLING.includes(row.command))) patch.fates = unsettled(state.fates);
  if (messages !== state.messages) patch.messages = messages;
  if (event.tickets?.length) patch.tickets = merged(state.tickets, event.tickets, event.status ?? state.status);
  const states = event.states && (Array.isArray(event.states) ? event.states : event.states[state.trainer]);
  if (states) patch.states = states;
  for (const name of ["entries", "branches", "periods", "edits", "hooks", "media", "recalls"]) if (event[name]) patch[name] = event[name];
  store.set(patch);
  if (event.entries) rememberFirst();
  if (event.status && ENDS.includes(event.status.status) && !ENDS.includes(state.status?.status)) load("results", {});
  if (rooted(store.get())) load("branches", { trainer: state.trainer });
}

// From here on the journal holds the results of these commands.
const unsettled = (fates) => Object.fromEntries(Object.entries(fates).filter(([place, fate]) => place === "playback" || fate.state !== "applied"));

// Whether the present branch is one that the page does not know.
function rooted({ branches, status, trainer }) {
  const present = status?.trainers?.[trainer]?.branch;
  return present !== undefined && !branches.some((branch) => branch.number === present) && asks(`branch ${trainer} ${present}`);
}

// Whether a question has not been asked yet: each is asked once.
const asked = new Set();
const asks = (question) => !asked.has(question) && Boolean(asked.add(question));

// A ticket is told the time at which it was first seen: refused ones stand in no journal.
function merged(old, fresh, status) {
  const all = new Map(old.map((ticket) => [ticket.number, ticket]));
  for (const ticket of fresh) all.set(ticket.number, { ...ticket, second: all.get(ticket.number)?.second ?? ticket.second ?? status?.seconds });
  return [...all.values()].sort((a, b) => a.number - b.number).slice(-LASTING);
}

// Iterations a second over the last seconds of training: a window of measurements that a rewind or a pause empties.
const WINDOW = 8;
let measured = [];

export function speed(state, status) {
  const now = status.trainers?.[state.trainer];
  if (!now || status.status !== "running") {
    measured = [];
    return state.speed;
  }
  const last = measured.at(-1);
  if (last && (last.branch !== now.branch || last.iteration > now.iteration)) measured = [];
  measured.push({ iteration: now.iteration, branch: now.branch, second: performance.now() / 1000 });
  while (measured.length > 2 && measured.at(-1).second - measured[0].second > WINDOW) measured.shift();
  const [first] = measured, newest = measured.at(-1);
  const passed = newest.second - first.second;
  return passed > 0.4 ? (newest.iteration - first.iteration) / passed : state.speed;
}
