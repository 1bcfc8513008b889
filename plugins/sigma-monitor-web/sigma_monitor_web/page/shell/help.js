// All keys in one dialog.
import { html, useEffect, useRef } from "../lib.js";
import { t } from "../words.js";

const KEYS = [
  [["Space"], "key.toggle"], [["→"], "key.iteration"], [["⇧ →"], "key.epoch"], [["R"], "key.rewind"], [["P"], "key.film"], [["⇧ ←", "⇧ →"], "key.moment"], [["S"], "key.save"], [["U"], "key.undo"],
  [["L"], "key.rate"], [["/"], "key.find"], [["1", null], "key.views"], [["Control K"], "key.palette"], [["T"], "key.theme"], [["?"], "key.help"],
];
const CHART = [
  [["←", "→"], "key.chart.read"], [["↑", "↓"], "key.chart.lane"], [["Enter"], "key.chart.pin"], [["+", "−"], "key.chart.zoom"],
  [["⇧ ↑", "⇧ ↓"], "key.chart.across"], [["⇧ ←", "⇧ →"], "key.chart.move"], [["0"], "key.chart.whole"],
];

const NAMED = { Space: "key.space", "Control K": "key.control.k" };
const named = (key) => (key in NAMED ? t(NAMED[key]) : key);
const names = (keys, views) => keys.map((key, i) => html`${i ? (key === null ? " – " : " ") : ""}<kbd>${key === null ? views : named(key)}</kbd>`);
const list = (rows, views) => html`<dl>${rows.map(([keys, text]) => html`<div key=${text}><dt>${names(keys, views)}</dt><dd>${t(text)}</dd></div>`)}</dl>`;

export function Help({ open, close, views }) {
  const dialog = useRef(null);
  useEffect(() => {
    if (open) dialog.current.showModal();
    else dialog.current.close();
  }, [open]);
  return html`<dialog id="help" ref=${dialog} aria-labelledby="h-help" onClose=${close}>
    <h2 id="h-help">${t("keys")}</h2>${list(KEYS, views)}<h3>${t("keys.chart")}</h3>${list(CHART)}
    <form method="dialog"><button class="primary">${t("close")}</button></form>
  </dialog>`;
}

export const Foot = ({ about }) => html`<footer class="foot"><p>${[["Space", "key.toggle.short"], ["→", "key.iteration"], ["⇧ →", "key.epoch"], ["R", "key.rewind.short"],
  ["S", "do.save.small"], ["L", "key.rate"], ["?", "key.help"]].map(([key, text]) => html`<kbd key=${key}>${named(key)}</kbd> ${t(text)} `)}</p><p class="num">${about}</p></footer>`;
