// What the page asks the server for, and how the answers enter the store.
import { Connection } from "./connection.js";
import { curves } from "./series.js";
import { pulse, store } from "./store.js";
import { t } from "./words.js";

const EVERY = 0.25; // seconds between the events that are followed
const MOST = 20000; // points of a curve at once
const LASTING = 2000; // rows of the journal, tickets and messages that the page keeps

let connection = null;
let wanted = []; // addresses of the curves that are drawn
let unfollow = () => {};
let settle = 0;

export const request = (what, more) => connection.request(what, more);

// Open the connection; with a token in the link, exchange it for the cookie first.
export async function start() {
  if (!(await admitted())) return store.set({ connection: "denied" });
  const url = new URL("ws", location.href);
  url.protocol = url.protocol.replace("http", "ws");
  url.hash = "";
  connection = new Connection(url, { changed, heard: () => { pulse.seen = performance.now(); } });
  connection.start();
  return undefined;
}

async function admitted() {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (!token) return true;
  history.replaceState(null, "", location.pathname + location.search);
  const headers = { "Content-Type": "application/json", "X-Sigma": "1" };
  const answer = await fetch("session", { method: "POST", headers, body: JSON.stringify({ token }) }).catch(() => null);
  return Boolean(answer?.ok);
}

function changed(state) {
  store.set({ connection: state });
  if (state === "online") greet().catch(report);
}

// An error that nobody waits for is a message of the page.
function report(error) {
  if (error.kind !== "offline") store.set(({ messages }) => ({ messages: [...messages, [0, error.message]] }));
}

async function greet() {
  const hello = await request("hello");
  const before = store.get().hello;
  if (before && (before.process !== hello.process || before.folder !== hello.folder)) forget();
  const trainer = hello.trainers.includes(store.get().trainer) ? store.get().trainer : (hello.trainers[0] ?? "");
  store.set({ hello, trainer, status: await request("status") });
  document.title = t("title", { name: hello.name });
  await Promise.all([refresh(), load("branches", { trainer }), load("states", { trainer }), load("edits", { trainer })]);
  follow();
}

function forget() {
  curves.clear();
  store.set({ journal: [], tickets: [], messages: [], states: [], branches: [], entries: [], hooks: [], fates: {}, lanes: null });
}

// A list of its own kind: what a server cannot give stays empty.
async function load(what, more) {
  const found = await request(what, more).catch((error) => report(error));
  if (found !== undefined) store.set({ [what]: found });
}

// The addresses and hooks as they are after a change.
export async function refresh() {
  const { trainer } = store.get();
  await Promise.all([load("entries", { pattern: "**" }), load("hooks", { trainer })]);
}

function refreshSoon() {
  clearTimeout(settle);
  settle = setTimeout(() => refresh(), 300);
}

// Draw other curves from now on.
export function want(addresses) {
  if (addresses.length === wanted.length && addresses.every((one, i) => one === wanted[i])) return;
  wanted = addresses;
  if (store.get().connection === "online" && store.get().hello) follow();
}

export function look(trainer) {
  store.set({ trainer, branches: [], states: [], lanes: null });
  Promise.all([refresh(), load("branches", { trainer }), load("states", { trainer }), load("edits", { trainer })]).then(follow);
}

function follow() {
  unfollow();
  const { journal, tickets, messages } = store.get();
  const last = (rows) => rows.at(-1)?.[0] ?? 0;
  const after = curves.cursors(wanted);
  unfollow = connection.subscribe("follow", {
    every: EVERY, trainer: store.get().trainer, addresses: wanted, after, most: MOST, journal: last(journal), messages: last(messages),
    tickets: tickets.reduce((most, ticket) => Math.max(most, ticket.number), 0),
  }, take);
}

const unseen = (old, fresh) => {
  const newest = old.at(-1)?.[0] ?? 0;
  const rows = (fresh ?? []).filter(([n]) => n > newest);
  return rows.length ? [...old, ...rows].slice(-LASTING) : old;
};

// The news since the last event, all at once.
export function take(event) {
  const state = store.get();
  const patch = {};
  if (event.status) Object.assign(patch, { status: event.status, speed: speed(state, event.status) });
  if (event.series && curves.take(event.series)) patch.drawn = state.drawn + 1;
  if (event.status && newcomer(state, event.status)) refreshSoon();
  const journal = unseen(state.journal, event.journal);
  if (journal !== state.journal) {
    patch.journal = journal;
    if (event.journal.some(([, row]) => row.command && !["pause", "go", "step", "save"].includes(row.command))) refreshSoon();
  }
  const messages = unseen(state.messages, event.messages);
  if (messages !== state.messages) patch.messages = messages;
  if (event.tickets?.length) patch.tickets = merged(state.tickets, event.tickets, event.status ?? state.status);
  for (const name of ["states", "branches", "edits", "hooks"]) if (event[name]) patch[name] = event[name];
  store.set(patch);
}

// Whether something is published that the page has no entry for. Each name asks once.
const asked = new Set();

function newcomer({ entries, trainer }, status) {
  const fresh = Object.keys(status.trainers?.[trainer]?.values ?? {}).filter((name) => !asked.has(`${trainer} ${name}`));
  for (const name of fresh) asked.add(`${trainer} ${name}`);
  return fresh.some((name) => !entries.some((entry) => entry.address === name || entry.address === `${trainer}.${name}`));
}

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
