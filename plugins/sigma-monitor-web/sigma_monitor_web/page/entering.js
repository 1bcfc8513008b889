// Login: exchange the link's token for a cookie; read the server's description and layout.

import { t } from "./words.js";

const HEADERS = { "Content-Type": "application/json", "X-Sigma": "1" };

const json = (answer) => (answer?.ok ? answer.json().catch(() => ({})) : null);

// What the server says of itself ({scopes, run, where, panels}), or null where it lets nobody in. A server that knows no
// sessions says nothing.
export async function enter() {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (token === null) return introduced(await fetch("session").catch(() => null));
  history.replaceState(null, "", location.pathname + location.search);
  return json(await fetch("session", { method: "POST", headers: HEADERS, body: JSON.stringify({ token }) }).catch(() => null));
}

const introduced = (answer) => (answer?.status === 401 ? null : (json(answer) ?? {}));

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

// The address of the socket; in a directory of runs, that of the run which the link names.
export function socket(run = new URLSearchParams(location.search).get("run")) {
  const url = new URL("ws", location.href);
  url.protocol = url.protocol.replace("http", "ws");
  url.hash = "";
  if (run) url.searchParams.set("run", run);
  return url;
}
