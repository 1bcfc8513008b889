// The run of a widget in place of a server: what it says of itself, and a socket whose documents are messages of the widget's model.
let model = null;

export const bind = (given) => { model = given; };

export const enter = async () => model.get("about");
export const tabs = async () => model.get("tabs");
export const lockedOut = async () => null;
export const socket = () => model;

// A name by which the messages of one socket are told from those of other views; pages without TLS have no crypto.randomUUID.
const draw = () => [...crypto.getRandomValues(new Uint32Array(4))].map((word) => word.toString(16)).join("-");

// What a WebSocket is to the page. Each message is acknowledged, so that none is sent to a page that reads nothing.
class Messages {
  readyState = 0;
  name = draw();

  constructor() {
    model.on("msg:custom", this.hear);
    this.tell("open");
  }

  tell(what, text = "") {
    model.send({ view: this.name, do: what, text });
  }

  hear = ({ view, opened, lines, closed }) => {
    if (view !== this.name || this.readyState === 3) return;
    if (opened) {
      this.readyState = 1;
      this.onopen?.();
    }
    for (const line of lines ?? []) this.onmessage?.({ data: line });
    if (closed) this.lose();
    else this.tell("seen");
  };

  send(text) {
    this.tell("say", text);
  }

  close() {
    if (this.readyState === 3) return;
    this.tell("close");
    this.lose();
  }

  lose() {
    this.readyState = 3;
    model.off("msg:custom", this.hear);
    this.onclose?.();
  }
}

export const open = () => new Messages();
