// The panels of plugins on a view: ES modules of their own, which are given all that they need.
import { html, useEffect, useId, useLayoutEffect, useMemo, useReducer, useRef, useState } from "../lib.js";
import { curves } from "../series.js";
import { alsoWant, request } from "../session.js";
import { store, useStore } from "../store.js";
import { panelsOn } from "../tabs.js";
import { t } from "../words.js";

const HOOKS = { useEffect, useId, useLayoutEffect, useMemo, useReducer, useRef, useState };
const NAME = /^[\w-]+$/;

// What panels hear of a curve: the columns of each branch by its number, as long as the branch has points.
const columns = (branches) => Object.fromEntries([...branches].map(([number, stretch]) => {
  const { iteration, epoch, second, value, low, high } = stretch.part(0, stretch.length);
  return [number, { iterations: iteration, epochs: epoch, seconds: second, values: value, lows: low, highs: high }];
}));

// Hear the curves of some addresses until the returned function is called.
export function follow(addresses, hear) {
  const forget = alsoWant(addresses);
  let drawn = -1;
  const look = (state) => {
    if (state.drawn === drawn) return;
    drawn = state.drawn;
    hear(Object.fromEntries(addresses.map((address) => [address, columns(curves.get(address)?.branches ?? [])])));
  };
  const leave = store.subscribe(look);
  look(store.get());
  return () => { leave(); forget(); };
}

function Panel({ name, title }) {
  const [found, set] = useState(null), trainer = useStore((state) => state.trainer), id = `panel-${name}`;
  useEffect(() => {
    if (!NAME.test(name)) return;
    import(`../panels/${name}.js`).then((module) => set({ component: module.default }), (error) => set({ why: error.message }));
  }, [name]);
  return html`<section class="card panel" aria-labelledby=${id}><div class="card-head"><h2 id=${id}>${title}</h2></div>
    <div class="panel-in">${found?.component ? html`<${found.component} html=${html} hooks=${HOOKS} ask=${request} follow=${follow} trainer=${trainer} />`
    : html`<p class="note">${found ? t("panel.failed", { why: found.why }) : t("loading")}</p>`}</div></section>`;
}

export function Panels({ view }) {
  const panels = useStore((state) => state.panels), tabs = useStore((state) => state.tabs), shown = panelsOn({ panels, tabs }, view);
  return shown.length ? html`<div class="panels">${shown.map((one) => html`<${Panel} key=${one.name} name=${one.name} title=${one.title} />`)}</div>` : null;
}
