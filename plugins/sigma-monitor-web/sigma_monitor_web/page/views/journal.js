// The journal: every command with its sender, time and result.
import { html, useState } from "../lib.js";
import { Command } from "../widgets/command.js";
import { Icon } from "../widgets/icon.js";
import { Menu } from "../widgets/menu.js";
import { actions } from "../playback.js";
import { moment } from "../steer.js";
import { change, place, subject, told } from "../charts/marks.js";
import { chain, counts } from "../series.js";
import { maySteer, ofTrainer, useStore } from "../store.js";
import { clockTime, count, spoken } from "../numbers.js";
import { t } from "../words.js";

// The names of the commands that change something which can be undone, and `undo` itself.
const edits = (state) => [...state.commands.filter((one) => one.undoable).map((one) => one.name), "undo"];
const SHOWN = 300;
const RESULT = { applied: ["go", "check"], refused: ["bad", "no"], queued: ["wait", "wait"], left: ["", "dot"] };

// The rows of the journal and the tickets that stand in none, newest first.
export function rows(state) {
  const alive = chain(state.branches, ofTrainer(state)?.branch ?? 0);
  const done = told(state.journal, state.trainer, state.branches).filter(({ row }) => row.command).map((one) => {
    const stands = counts(alive, one.branch, place(one));
    return { key: `j${one.number}`, second: one.row.seconds, time: one.row.time, iteration: place(one), branch: one.branch, who: who(one.row), command: one.row.command,
      what: subject(one), change: change(one), result: stands ? "applied" : "left", why: stands ? (one.row.cause ?? "") : t("journal.branch", { n: one.branch }), own: !one.row.by };
  });
  const open = state.tickets.filter((ticket) => ticket.state !== "applied").map((ticket) => {
    const row = { ...ticket.arguments, command: ticket.command, trainer: ticket.trainer ?? state.trainer };
    return { key: `t${ticket.number}`, second: ticket.second ?? Infinity, iteration: moment(ticket)?.iteration ?? null, branch: null, who: ticket.who ?? "", command: ticket.command,
      what: subject({ row }), change: change({ row }), result: ticket.state, why: ticket.why ?? "" };
  });
  const all = done.reverse();
  for (const row of open) all.splice(Math.max(0, all.findIndex((one) => one.second <= row.second)), 0, row);
  return all;
}

const who = (row) => (row.by ? t("who.hook", { name: row.by }) : (row.who ?? t("who.outside")));

// The newest edit in force from outside, which `undo` reverts.
const newest = (all, edits) => all.find((row) => row.own && row.result === "applied" && edits.includes(row.command));

const FILTERS = { all: () => true, edits: (row, edits) => edits.includes(row.command), refused: (row) => row.result === "refused" };

function Row({ row, undoes, steers }) {
  const [tone, sign] = RESULT[row.result] ?? RESULT.queued;
  return html`<tr class=${row.result === "left" ? "left" : ""}><td class="num">${Number.isFinite(row.second) ? spoken(row.second) : ""}${Number.isFinite(row.time) ? html`<small>${clockTime(row.time, 0)}</small>` : null}</td><td class="r" data-k=${t("axis.iteration.unit")}>${row.iteration === null ? t("next") : count(row.iteration)}</td>
    <td data-k=${t("branch.word")}>${row.branch ?? ""}</td><td data-k=${t("journal.by")}>${row.who}</td><td><b>${row.command}</b></td><td class="full"><code>${row.what}</code></td><td>${row.change}</td>
    <td><span class=${`st ${tone}`}><${Icon} name=${sign} />${t(`result.${row.result}`)}</span>${row.why ? html`<small>${row.why}</small>` : null}</td>
    <td class="r">${undoes ? html`<button class="mini" type="button" aria-keyshortcuts="U" disabled=${!steers} onClick=${actions.undo}>${t("undo")}</button>` : null}</td></tr>`;
}

export function Journal() {
  const state = useStore((all) => all), [filter, show] = useState("all");
  const all = rows(state), known = edits(state), seen = all.filter((row) => FILTERS[filter](row, known)), last = newest(all, known);
  const fate = state.fates.undo;
  return html`<section class="card" aria-labelledby="h-list"><div class="card-head"><h2 id="h-list">${t("journal.commands")}</h2><span class="note">${t("journal.note")} <code>sigma replay --check</code></span>
      <div class="seg push" role="group" aria-label=${t("journal.show")}>${Object.keys(FILTERS).map((one) => html`<button key=${one} type="button" aria-pressed=${String(one === filter)} onClick=${() => show(one)}>${t(`journal.${one}`)}</button>`)}</div>
      ${maySteer(state) ? html`<${Menu} label=${t("command.any")} text=${t("command")} icon="down">${(close) => html`<${Command} close=${close} />`}<//>` : null}</div>
    ${fate?.state === "refused" ? html`<p class="fate refused alone"><${Icon} name="no" /><span>${fate.why}</span></p>` : null}
    ${seen.length ? html`<div class="table-wrap" tabindex="0" role="group" aria-label=${t("journal.commands")}><table class="list journal"><thead><tr>${["when", "iteration", "branch", "who", "command", "what", "change", "result"].map((name) => html`<th key=${name} scope="col" class=${name === "iteration" ? "r" : ""}>${t(`journal.head.${name}`)}</th>`)}
      <td><span class="sr">${t("actions")}</span></td></tr></thead><tbody>${seen.slice(0, SHOWN).map((row) => html`<${Row} key=${row.key} row=${row} undoes=${row === last} steers=${maySteer(state)} />`)}</tbody></table></div>
      ${seen.length > SHOWN ? html`<p class="note pad">${t("journal.more", { n: count(seen.length - SHOWN) })}</p>` : null}` : html`<p class="empty">${t(`journal.none.${filter}`)}</p>`}
  </section>`;
}
