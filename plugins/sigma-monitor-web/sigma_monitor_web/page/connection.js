// One WebSocket: requests with answers, subscriptions with events, and reconnecting by itself.

const FIRST_DELAY = 500;
const LONGEST_DELAY = 5000;
const SILENCE = 6000; // after which the server is asked whether it is still there
const OPENING = 10000; // after which a connection that does not open is given up

export class Refusal extends Error {
  constructor({ kind, message }) {
    super(message);
    this.kind = kind;
  }
}

export class Connection {
  // `changed` hears "online" and "offline".
  constructor(url, { changed, open = (at) => new WebSocket(at) }) {
    Object.assign(this, { url, changed, open });
    this.number = 0;
    this.waiting = new Map(); // requests by number
    this.hearing = new Map(); // subscriptions by number
    this.delay = FIRST_DELAY;
    this.socket = null;
  }

  start() {
    const socket = this.open(this.url);
    this.socket = socket;
    this.silence = setTimeout(() => socket.close(), OPENING);
    socket.onopen = () => {
      if (this.ended) return socket.close();
      this.delay = FIRST_DELAY;
      this.listen();
      return this.changed("online");
    };
    socket.onmessage = (event) => this.take(event.data);
    socket.onclose = () => this.lost();
  }

  end() {
    clearTimeout(this.retry);
    this.ended = true;
    if (this.socket?.readyState !== 0) this.socket?.close(); // one that is opening is closed once it is open: no browser complains then
  }

  again() {
    this.delay = FIRST_DELAY;
    this.socket?.close();
  }

  lost() {
    clearTimeout(this.silence);
    this.socket = null;
    for (const { reject } of this.waiting.values()) reject(new Refusal({ kind: "offline", message: "" }));
    this.waiting.clear();
    this.hearing.clear();
    if (this.ended) return undefined;
    this.changed("offline");
    if (this.ended) return undefined;
    this.retry = setTimeout(() => this.start(), this.delay);
    this.delay = Math.min(this.delay * 2, LONGEST_DELAY);
    return undefined;
  }

  // Without a sign of life for a while, ask for one; without an answer, begin again.
  listen() {
    clearTimeout(this.silence);
    this.silence = setTimeout(() => {
      const asked = this.socket;
      this.request("status").catch(() => {});
      this.silence = setTimeout(() => { if (asked === this.socket) asked?.close(); }, SILENCE);
    }, SILENCE);
  }

  take(text) {
    const answer = JSON.parse(text);
    this.listen();
    if ("event" in answer) return this.hearing.get(answer.id)?.(answer.event);
    const asked = this.waiting.get(answer.id);
    this.waiting.delete(answer.id);
    if (!asked) return undefined;
    return "error" in answer ? asked.reject(new Refusal(answer.error)) : asked.resolve(answer.result);
  }

  send(what, more) {
    this.number += 1;
    this.socket.send(JSON.stringify({ id: this.number, do: what, ...more }));
    return this.number;
  }

  get ready() {
    return this.socket?.readyState === 1;
  }

  request(what, more = {}) {
    if (!this.ready) return Promise.reject(new Refusal({ kind: "offline", message: "" }));
    return new Promise((resolve, reject) => this.waiting.set(this.send(what, more), { what, resolve, reject }));
  }

  // No longer wait for requests of a kind: they end with a reason, and the server stops what it can.
  abandon(what, message) {
    for (const [number, asked] of [...this.waiting].filter(([, one]) => one.what === what)) {
      this.waiting.delete(number);
      if (this.ready) this.request("cancel", { of: number }).catch(() => {});
      asked.reject(new Refusal({ kind: "cancelled", message }));
    }
  }

  // Hear the events of a subscription; the returned function ends it.
  subscribe(what, more, hear, refused = () => {}) {
    if (!this.ready) return () => {};
    const number = this.send(what, more);
    const socket = this.socket;
    this.hearing.set(number, hear);
    this.waiting.set(number, { resolve: () => {}, reject: (error) => { this.hearing.delete(number); refused(error); } });
    return () => {
      this.hearing.delete(number);
      this.waiting.delete(number);
      if (this.ready && socket === this.socket) this.request("cancel", { of: number }).catch(() => {});
    };
  }
}
