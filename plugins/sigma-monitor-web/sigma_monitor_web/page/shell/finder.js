// The palette: one field that finds commands, addresses, views and runs; what is chosen is done, or shown to be set.
import { html, useEffect, useMemo, useRef, useState } from "../lib.js";
import { useLanes } from "../charts/uselanes.js";
import { find } from "../finder/fuzzy.js";
import { items, valueOf } from "../finder/items.js";
import { request } from "../session.js";
import { store, useStore } from "../store.js";
import { Address } from "../widgets/address.js";
import { Command } from "../widgets/command.js";
import { Icon } from "../widgets/icon.js";
import { Single } from "../widgets/knobs.js";
import { Again, Link, Notify, Others } from "../widgets/share.js";
import { t } from "../words.js";

const MOST = 50; // items that are listed
const OFTEN = 1000; // milliseconds between two looks at a value

const SHOWS = { link: Link, others: Others, again: Again, notify: Notify };

const shut = () => store.set({ finding: false });

// The names of the runs, asked when the palette is opened; none where the server has one run.
function useRuns(open) {
  const [known, set] = useState([]), many = useStore((state) => state.where === "ui");
  useEffect(() => { if (open && many) request("names").then(set, () => set([])); }, [open, many]);
  return known;
}

// A text whose marked letters stand out.
function Marked({ text, places }) {
  const at = new Set(places);
  return html`<span class="found">${[...text].map((letter, i) => (at.has(i) ? html`<b key=${i}>${letter}</b>` : letter))}</span>`;
}

function List({ found, at, take, id }) {
  useEffect(() => { document.getElementById(`${id}-${at}`)?.scrollIntoView({ block: "nearest" }); }, [at, found]);
  return html`<ul class="found-list" id=${`${id}-list`} role="listbox" aria-label=${t("find")}>${found.map(({ item, places }, i) => html`
    <li key=${item.id} id=${`${id}-${i}`} role="option" aria-selected=${String(i === at)} onPointerDown=${(event) => event.preventDefault()} onClick=${() => take(item)}>
      <${Marked} text=${item.texts[0]} places=${places} /><small>${item.note}</small><small class="kind">${t(`find.kind.${item.kind}`)}</small></li>`)}</ul>`;
}

function Search({ found, query, type, take }) {
  const [at, move] = useState(0), field = useRef(null), shown = Math.min(at, found.length - 1), id = "finder";
  useEffect(() => { field.current.focus(); }, []);
  const keys = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 }[event.key];
    if (step && found.length) {
      event.preventDefault();
      const ends = Math.abs(step) > 1 ? Math.min(found.length - 1, Math.max(0, shown + step)) : (shown + step + found.length) % found.length;
      move(ends);
    } else if (event.key === "Enter" && found[shown]) {
      event.preventDefault();
      take(found[shown].item);
    } else if (event.key === "Escape") {
      event.preventDefault(); // else some browsers empty the field first
      shut();
    }
  };
  return html`<div class="finder-field"><${Icon} name="find" /><input ref=${field} type="search" role="combobox" autocomplete="off" spellcheck=${false} aria-label=${t("find")} placeholder=${t("find.hint")}
      aria-expanded="true" aria-controls=${`${id}-list`} aria-autocomplete="list" aria-activedescendant=${found.length ? `${id}-${shown}` : undefined} value=${query}
      onInput=${(event) => { type(event.target.value); move(0); }} onKeyDown=${keys} /><kbd>Esc</kbd></div>
    <${List} found=${found} at=${shown} take=${take} id=${id} />
    <p class=${found.length ? "sr" : "empty"} role="status">${found.length ? t("find.count", { n: found.length }) : t("find.none")}</p>`;
}

// A value that cannot be set: as it is now, and a chart of it.
function Shown({ entry }) {
  const state = useStore((all) => all), { add } = useLanes(), [asked, set] = useState(undefined);
  const numeric = ["number", "whole"].includes(entry.type);
  useEffect(() => {
    const ask = () => request("get", { pattern: entry.address }).then((found) => set(found[entry.address]), () => {});
    const again = setInterval(ask, OFTEN);
    ask();
    return () => clearInterval(again);
  }, [entry.address]);
  const now = typeof asked === "object" && asked !== null ? JSON.stringify(asked.array ?? asked) : valueOf(state, asked === undefined ? entry : { ...entry, value: asked });
  const draw = () => { add(entry.address, false); location.hash = "train"; shut(); };
  return html`<p class="finder-value" role="status"><b>${now || "–"}</b> ${entry.unit}</p>${entry.doc ? html`<p class="note">${entry.doc}</p>` : null}
    ${numeric ? html`<button class="primary" type="button" onClick=${draw}>${t("chart.add")}</button>` : null}`;
}

function Detail({ item, back }) {
  const entries = useStore((state) => state.entries), card = useRef(null);
  const entry = item.entry && (entries.find(({ address }) => address === item.entry.address) ?? item.entry);
  useEffect(() => { (card.current.querySelector("input:not(:disabled), select:not(:disabled), .primary") ?? card.current.querySelector("button")).focus(); }, []);
  const leave = (event) => {
    if (event.key !== "Escape" || event.defaultPrevented) return;
    event.preventDefault();
    event.stopPropagation();
    back();
  };
  return html`<div class="finder-detail" ref=${card} onKeyDown=${leave}>
    <p class="row"><button class="quiet" type="button" onClick=${back}><${Icon} name="left" /><span>${t("find.back")}</span></button>${entry && !entry.settable ? html`<${Address} of=${entry.address} />` : null}</p>
    ${item.shows ? html`<${SHOWS[item.shows]} />` : !entry ? html`<${Command} first=${item.command} close=${shut} />` : entry.settable && entry.type !== "array" ? html`<${Single} entry=${entry} place="finder" />` : html`<${Shown} entry=${entry} />`}</div>`;
}

function Inside({ views }) {
  const state = useStore((all) => all), known = useRuns(true), [query, type] = useState(""), [chosen, choose] = useState(null);
  const all = useMemo(() => items(state, views, known), [state.entries, state.commands, state.status?.status, state.language, state.connection, known, views.length]);
  const found = useMemo(() => find(all, query, MOST), [all, query]);
  const take = (item) => {
    if (item.entry || item.command || item.shows) return choose(item);
    shut();
    if (item.run) location.assign(`?run=${encodeURIComponent(item.run)}#train`);
    else requestAnimationFrame(item.act);
    return undefined;
  };
  return chosen ? html`<${Detail} item=${chosen} back=${() => choose(null)} />` : html`<${Search} ...${{ found, query, type, take }} />`;
}

export function Finder({ views }) {
  const open = useStore((state) => state.finding), dialog = useRef(null);
  useEffect(() => {
    if (open) dialog.current.showModal();
    else dialog.current.close();
  }, [open]);
  const outside = (event) => { if (event.target === dialog.current) shut(); };
  return html`<dialog id="finder" ref=${dialog} aria-label=${t("find")} onClose=${shut} onClick=${outside}>${open ? html`<${Inside} views=${views} />` : null}</dialog>`;
}
