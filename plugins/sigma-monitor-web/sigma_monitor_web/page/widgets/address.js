// An address, cut in the middle where it is long: its last two levels always stay.
import { html } from "../lib.js";
import { tail } from "../numbers.js";

export function Address({ of }) {
  const end = tail(of, 2);
  return html`<span class="addr" title=${of}><span>${of.slice(0, of.length - end.length)}</span><span>${end}</span></span>`;
}
