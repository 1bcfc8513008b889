// Rows of the data that are numbers or texts, as a table whose rows can be chosen; columns have the names that the data have.
import { html } from "../lib.js";
import { useChoosing } from "./choosing.js";
import { Spark } from "./past.js";
import { about, word } from "./rows.js";
import { Icon } from "../widgets/icon.js";
import { figure, tick } from "../numbers.js";
import { t } from "../words.js";

const MOST = 60; // columns

// The name of a number of a section: that of its column, or its place.
export const titled = (names, at) => names?.[at] ?? t("try.feature", { n: at + 1 });

const flat = (value) => [value].flat(Infinity);

// The columns of the first row that is there: {section, at, name}.
function columnsOf(shown, names) {
  const first = Object.values(shown)[0]?.table ?? {};
  return Object.entries(first).flatMap(([section, value]) => flat(value).map((_, at) => ({ section, at, name: titled(names[section], at) })));
}

const several = (columns) => new Set(columns.map((one) => one.section)).size > 1;

function Head({ columns, more, texts, judged, measured, past }) {
  const sections = several(columns);
  return html`<thead><tr><th scope="col">${t("data.column.row")}</th><th scope="col">${t("data.column.label")}</th>${judged ? html`<th scope="col">${t("data.column.read")}</th>` : null}${measured ? html`<th scope="col" class="r">${t("data.column.loss")}</th>` : null}${past ? html`<th scope="col">${t("past")}</th>` : null}
    ${texts ? html`<th scope="col">${t("try.text")}</th>` : null}${columns.map(({ section, name }, i) => html`<th key=${i} scope="col" class="r">${sections ? `${section}: ` : ""}${name}</th>`)}${more ? html`<th scope="col">${t("data.column.more", { n: more })}</th>` : null}</tr></thead>`;
}

// `names`: those of columns by section; without `classes` no prediction is right or wrong; the rest as in Tiles.
export function Table({ rows, shown, names, classes, edits, chosen, choose }) {
  const { place, press, move } = useChoosing(rows, chosen, choose), all = columnsOf(shown, names), columns = all.slice(0, MOST), first = Object.values(shown)[0];
  const judged = rows.some((row) => row.predicted !== null && row.predicted !== undefined), measured = rows.some((row) => row.loss !== undefined), texts = first?.text !== undefined, past = rows.some((row) => row.fact);
  return html`<div class="cases-wrap" tabindex="0" role="group" aria-label=${t("data.rows")}><table class="cases" ref=${place}><${Head} columns=${columns} more=${all.length - columns.length} texts=${texts} judged=${judged} measured=${measured} past=${past} />
    <tbody>${rows.map((row, i) => {
      const excluded = edits.excluded.has(row.row), given = edits.labels[row.row], label = word(given ?? row.label), wrong = classes.length && judged && word(row.predicted) !== label, picked = chosen.has(row.row), one = shown[row.row];
      return html`<tr key=${row.row} class=${`${excluded ? "out" : ""} ${picked ? "picked" : ""}`} onClick=${(event) => press(event, i)}><th scope="row"><button type="button" tabindex=${i === 0 || picked ? 0 : -1} aria-pressed=${String(picked)} onKeyDown=${(event) => move(event, i)}><span aria-hidden="true">${row.row}</span><span class="sr">${about(row, { excluded, given })}</span>${picked ? html`<${Icon} name="check" class="tick" />` : null}</button></th>
        <td>${given !== undefined ? html`<mark>${label}</mark>` : html`<b>${label}</b>`}${excluded ? html` <span class="note">${t("data.excluded")}</span>` : null}</td>${judged ? html`<td class=${wrong ? "wrong" : ""}>${word(row.predicted)}</td>` : null}${measured ? html`<td class="r">${row.loss === undefined ? "" : figure(row.loss)}</td>` : null}${past ? html`<td class="past-cell">${row.fact ? html`<${Spark} losses=${row.losses} />${row.fact}` : ""}</td>` : null}
        ${texts ? html`<td class="text"><span class="words">${one?.text}</span></td>` : null}${columns.map(({ section, at }) => html`<td key=${`${section} ${at}`} class="r">${one ? tick(flat(one.table?.[section])[at]) : ""}</td>`)}</tr>`;
    })}</tbody></table></div>`;
}
