// Login: exchange the link's token for a cookie; read the server's description and layout.

import { t } from "./words.js";

const HEADERS = { "Content-Type": "application/json", "X-Sigma": "1" };
const WRONG = { 401: "login.wrong", 503: "login.unreadable" };

// Log in with a name and a password; the answer is empty, or says why not.
export async function logIn(name, password) {
  const answer = await fetch("login", { method: "POST", headers: HEADERS, body: JSON.stringify({ name, password }) }).catch(() => null);
  if (answer?.ok) return "";
  return answer?.status in WRONG ? t(WRONG[answer.status]) : hindrance(answer, "login.later");
}

// Why nobody can come in now; `later` says that there were too many wrong tries.
async function hindrance(answer, later) {
  if (answer?.status === 429) return t(later, { n: answer.headers.get("Retry-After") });
  return (await answer?.json().catch(() => null))?.error ?? t("say.offline");
}

// End the session, and ask anew.
export const logOut = () => fetch("leave", { method: "POST", headers: HEADERS, body: "{}" }).then(() => location.reload(), () => {});

// The key of links that only read; null where one may not pass it on.
export const readingToken = async () => (await json(await fetch("link").catch(() => null)))?.token ?? null;

const json = (answer) => (answer?.ok ? answer.json().catch(() => ({})) : null);

// What the server says of itself ({scopes, run, where, person, panels}), or {denied, login, why} where it lets nobody in: `login`, where
// people have passwords; `why`, where it is not for the link. A server that knows no sessions says nothing.
export async function enter() {
  const { token, hash } = parted(location.hash);
  if (token === null) return introduced(await fetch("session").catch(() => null));
  history.replaceState(null, "", location.pathname + location.search + hash);
  const answer = await fetch("session", { method: "POST", headers: HEADERS, body: JSON.stringify({ token }) }).catch(() => null);
  if (answer?.ok) return json(answer);
  return answer?.status === 401 ? refused(answer) : unread(answer);
}

async function refused(answer, why = "") {
  const told = (await answer?.json().catch(() => null)) ?? {};
  return { denied: true, login: Boolean(told.login), why };
}

// A link that nobody has looked at, for want of a network or after too many wrong ones: one may have come in before.
async function unread(answer) {
  const before = await fetch("session").catch(() => null);
  return before?.ok ? json(before) : refused(before, await hindrance(answer, "link.later"));
}

// The token of a link, and its hash without it: #token=…, or #train?zoom=…&token=….
export function parted(hash) {
  const [view, query] = hash.includes("?") ? [hash.split("?")[0], hash.split("?").slice(1).join("?")] : ["", hash.slice(1)];
  const all = query.split("&"), mine = (one) => one.startsWith("token="), left = all.filter((one) => !mine(one)).join("&");
  const token = new URLSearchParams(all.find(mine) ?? "").get("token");
  return { token, hash: view && left ? `${view}?${left}` : view };
}

const introduced = (answer) => (answer?.status === 401 ? refused(answer) : (json(answer) ?? {}));

// The tabs of the layout: [{view, panels, charts, axis, smoothing}], empty for the page's own.
export async function tabs() {
  const found = await json(await fetch("layout.json").catch(() => null));
  return Array.isArray(found?.tabs) ? found.tabs : [];
}

// Write the layout to its file: {saved} is its path, {error} the reason of a failure.
export async function saveTabs(layout) {
  const answer = await fetch("layout.json", { method: "POST", headers: HEADERS, body: JSON.stringify(layout) }).catch(() => null);
  const told = (await answer?.json().catch(() => null)) ?? {};
  return answer?.ok ? told : { error: told.error ?? t("say.offline") };
}

// Whether a connection was refused or ended for want of a cookie, which it does not tell: {login}, or null.
export async function lockedOut() {
  const answer = await fetch("session").catch(() => null);
  return answer?.status === 401 ? { login: Boolean((await answer.json().catch(() => null))?.login) } : null;
}

// Open a socket at an address.
export const open = (at) => new WebSocket(at);

// The address of the socket; in a directory of runs, that of the run which the link names.
export function socket(run = new URLSearchParams(location.search).get("run")) {
  const url = new URL("ws", location.href);
  url.protocol = url.protocol.replace("http", "ws");
  url.hash = "";
  if (run) url.searchParams.set("run", run);
  return url;
}
