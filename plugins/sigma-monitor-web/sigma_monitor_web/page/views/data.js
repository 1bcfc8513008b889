// The data: rows by their losses, worst first, or by their history, to exclude or relabel; their map; their profile.
import { useMoment } from "../film.js";
import { html, useEffect, useState } from "../lib.js";
import { Actions, useShown } from "../insight/acting.js";
import { useAsked, useEdited, usePace } from "../insight/asking.js";
import { Balance, Confusion } from "../insight/confusion.js";
import { DataMap } from "../insight/map.js";
import { Parts } from "../insight/parts.js";
import { HISTORY, Past, Record, ordersOf, told } from "../insight/past.js";
import { Profile } from "../insight/profile.js";
import { Tiles, word } from "../insight/rows.js";
import { Table } from "../insight/table.js";
import { ofTrainer, useSpots, useStore } from "../store.js";
import { count } from "../numbers.js";
import { t } from "../words.js";

const PAGE = 60; // rows at a time
const NOTHING = { excluded: [], labels: {} };
const OFTEN = 4000; // milliseconds between two looks at a history that grows

function Filters({ splits, classes, filter, change }) {
  const choose = (patch) => change({ ...filter, start: 0, predicted: null, ...patch });
  return html`<label class="inline">${t("data.split")}<select value=${filter.split} onChange=${(event) => choose({ split: event.target.value })}>${Object.keys(splits).map((name) => html`<option key=${name} value=${name}>${name}</option>`)}</select></label>
    <label class="inline">${t("data.order")}<select value=${filter.order} onChange=${(event) => choose({ order: event.target.value })}>${["worst", "best", "excluded", ...ordersOf(classes)].map((one) => html`<option key=${one} value=${one}>${t(`data.order.${one}`)}</option>`)}</select></label>
    ${classes.length && !HISTORY.includes(filter.order) ? html`<label class="inline">${t("data.class")}<select value=${filter.label === null ? "" : classes.indexOf(filter.label)} onChange=${(event) => choose({ label: event.target.value === "" ? null : classes[Number(event.target.value)] })}><option value="">${t("data.class.all")}</option>${classes.map((name, i) => html`<option key=${i} value=${i}>${word(name)}</option>`)}</select></label>` : null}
    ${filter.predicted === null ? null : html`<button class="mini" type="button" onClick=${() => choose({ label: null })}>${t("data.as", { name: word(filter.predicted) })} ×</button>`}`;
}

function Pages({ found, filter, change }) {
  const last = Math.min(found.total, filter.start + PAGE), go = (start) => change({ ...filter, start });
  if (found.total <= PAGE) return null;
  return html`<div class="row pages push"><button type="button" class="quiet" disabled=${filter.start === 0} onClick=${() => go(Math.max(0, filter.start - PAGE))}>${t("data.back")}</button>
    <span class="note">${count(filter.start + 1)}–${count(last)}</span><button type="button" class="quiet" disabled=${last >= found.total} onClick=${() => go(filter.start + PAGE)}>${t("data.next")}</button></div>`;
}

function Rows({ splits, trainer, filter, change, again, refresh }) {
  const moment = useMoment(), edited = useEdited(), [chosen, choose] = useState(new Set()), classes = useAsked("classes", { trainer }).result ?? [];
  const own = (useAsked("edits", { trainer }, edited).result ?? {})[filter.split] ?? NOTHING, edits = { excluded: new Set(own.excluded), labels: own.labels };
  const past = HISTORY.includes(filter.order), grown = usePace(OFTEN), about = { trainer, split: filter.split, order: filter.order, start: filter.start, count: PAGE };
  const asks = filter.order === "excluded" ? null : past ? about : { ...about, class: filter.label, predicted: filter.predicted, ...moment };
  const { result, why } = useAsked(past ? "row_history" : "losses", asks, past ? `${again} ${grown}` : again);
  const out = own.excluded.slice(filter.start, filter.start + PAGE), found = asks ? result : { total: own.excluded.length, rows: out.map((row) => ({ row, label: null, predicted: null })) };
  const wanted = (found?.rows ?? []).map((one) => one.row), shown = useShown(trainer, filter.split, wanted);
  const rows = (found?.rows ?? []).map((one) => ({ ...one, ...(past ? told(one, filter.order) : {}), label: one.label ?? shown[one.row]?.label }));
  const names = useAsked("columns", { trainer }).result ?? {}, drawn = !wanted.length || Object.values(shown).some((one) => one.picture) || !Object.keys(shown).length;
  useEffect(() => choose(new Set()), [JSON.stringify(filter)]);
  // A link, or rows that have gone, may leave the part behind the last row.
  useEffect(() => { if (found?.total && !wanted.length && filter.start >= found.total) change({ ...filter, start: PAGE * Math.floor((found.total - 1) / PAGE) }); }, [found?.total, wanted.length, filter.start]);
  const title = t(`data.title.${filter.order}`);
  return html`<section class="card rows-card" aria-labelledby="h-rows"><div class="card-head"><${Parts} /><h2 id="h-rows" class="sr">${title}</h2><${Filters} splits=${splits} classes=${classes} filter=${filter} change=${change} />
      <span class="note push">${found ? t("data.of", { n: count(rows.length), all: count(found.total) }) : ""}${found && asks && !past && found.at !== null ? ` · ${t("data.at", { at: count(found.at) })}` : ""}</span><button class="quiet mini" type="button" onClick=${refresh}>${t("data.again")}</button></div>
    ${why && past ? html`<${Record} split=${filter.split} why=${why} />` : why ? html`<p class="empty">${t("data.unread", { why })}</p>` : !found ? html`<p class="empty">${t("data.measuring")}</p>` : rows.length === 0 ? html`<p class="empty">${t(`data.empty.${filter.order}`)}</p>` : html`<${drawn ? Tiles : Table} rows=${rows} shown=${shown} names=${names} classes=${classes} edits=${edits} chosen=${chosen} choose=${choose} />`}
    <${Past} trainer=${trainer} split=${filter.split} rows=${[...chosen]} grown=${grown} />
    <div class="acts-bar"><${Actions} chosen=${chosen} clear=${() => choose(new Set())} split=${filter.split} classes=${classes} edits=${edits} />${found ? html`<${Pages} found=${found} filter=${filter} change=${change} />` : null}</div></section>`;
}

export function Data() {
  const part = useStore((state) => state.part), trainer = useStore((state) => state.trainer), ready = useStore((state) => ofTrainer(state) !== null);
  if (part === "map" && ready) return html`<${DataMap} key=${trainer} trainer=${trainer} />`;
  return part === "profile" && ready ? html`<${Profile} key=${trainer} trainer=${trainer} />` : html`<${Losses} />`;
}

function Losses() {
  const trainer = useStore((state) => state.trainer), ready = useStore((state) => ofTrainer(state) !== null), [again, refresh] = useState(0), edited = useEdited();
  const { result: splits, why } = useAsked("splits", ready ? { trainer } : null, edited), [filter, change] = useSpots("data", { split: "", order: "worst", label: null, predicted: null, start: 0 });
  const names = Object.keys(splits ?? {}), of = { ...filter, split: names.includes(filter.split) ? filter.split : names.includes("training") ? "training" : names[0] };
  const beside = names.includes("validation") && !filter.split ? "validation" : of.split;
  if (splits && !names.length) return html`<section class="card" aria-labelledby="h-rows"><div class="card-head"><${Parts} /><h2 id="h-rows" class="sr">${t("data.rows")}</h2></div><p class="empty">${t("data.gone")}</p></section>`;
  if (!splits) return html`<section class="card" aria-labelledby="h-rows"><div class="card-head"><${Parts} /><h2 id="h-rows" class="sr">${t("data.rows")}</h2></div><p class="empty">${why || t("loading")}</p></section>`;
  const open = (label, predicted) => change({ split: beside, order: "worst", label, predicted, start: 0 });
  const picked = filter.predicted === null ? null : [filter.label, filter.predicted], when = `${again} ${edited}`;
  return html`<${Rows} key=${trainer} splits=${splits} trainer=${trainer} filter=${of} change=${change} again=${again} refresh=${() => refresh(again + 1)} />
    <div class="side"><${Confusion} trainer=${trainer} split=${beside} again=${when} open=${open} picked=${picked} /><${Balance} trainer=${trainer} split=${of.split} again=${when} /></div>`;
}
