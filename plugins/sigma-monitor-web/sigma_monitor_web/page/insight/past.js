// What became of rows over the epochs: their losses as lines, and the hook that records them.
import { html } from "../lib.js";
import { seldom, useAsked } from "./asking.js";
import { Plot } from "./paint.js";
import { Fate } from "../widgets/fate.js";
import { command } from "../steer.js";
import { maySteer, useStore } from "../store.js";
import { SERIES } from "../charts/palette.js";
import { count, figure } from "../numbers.js";
import { t } from "../words.js";

export const HISTORY = ["mislabelled", "forgotten", "late", "never"]; // orders of rows by what became of them
export const ordersOf = (classes) => (classes.length ? HISTORY : ["mislabelled"]); // a network of numbers never predicts a wrong class
const UNSEEN = "nothing is recorded"; // begins why there is no history yet
const HOOK = "row_history", WIDE = 60, HIGH = 14, TALL = 132, MOST = SERIES.length;

const known = (losses) => losses.filter((value) => value !== null);

// What a list says of a row in an order, beside the line of its losses.
export function told(row, order) {
  const fact = order === "forgotten" ? t("data.fact.forgotten", { n: row.forgotten }) : order === "late" ? t("data.fact.late", { epoch: row.learned }) : t("data.fact.mean", { value: figure(row.mean) });
  return { fact, losses: row.losses };
}

// Losses as points of a line; where a row was excluded, there are none.
function placed(losses, width, height, most) {
  const step = width / Math.max(1, losses.length - 1);
  return losses.map((value, i) => (value === null ? null : [i * step, height - 1 - (Math.min(value, most) / most) * (height - 2)]));
}

export function Spark({ losses }) {
  const most = Math.max(1e-12, ...known(losses)), line = placed(losses, WIDE, HIGH, most).filter(Boolean);
  return html`<svg class="loss-spark" viewBox=${`0 0 ${WIDE} ${HIGH}`} preserveAspectRatio="none" aria-hidden="true"><polyline points=${line.map((at) => at.map((value) => value.toFixed(1)).join()).join(" ")} /></svg>`;
}

function paint(rows, most) {
  return (pen, width, height, colours) => {
    pen.font = `11px ${colours.family}`;
    pen.fillStyle = colours["ink-3"];
    pen.fillText(figure(most), 0, 10);
    pen.fillText("0", 0, height - 4);
    rows.forEach(({ losses }, k) => {
      pen.strokeStyle = colours[SERIES[k]];
      pen.lineWidth = 1.6;
      pen.setLineDash(colours.dash(SERIES[k]));
      pen.beginPath();
      let down = false;
      for (const at of placed(losses, width - 48, height - 8, most)) {
        if (at) pen[down ? "lineTo" : "moveTo"](at[0] + 44, at[1] + 4);
        down = Boolean(at);
      }
      pen.stroke();
    });
  };
}

// The losses of chosen rows over the epochs, as far as they are recorded.
export function Past({ trainer, split, rows, grown }) {
  const { result } = useAsked(HOOK, rows.length && split ? { trainer, split, rows: rows.slice(0, MOST) } : null, grown);
  const shown = rows.length && result ? result.rows.filter((one) => rows.includes(one.row)) : [];
  if (!shown.length) return null;
  const most = Math.max(1e-12, ...shown.flatMap((one) => known(one.losses))), { epochs } = result, of = JSON.stringify(shown.map((one) => [one.row, one.losses]));
  const range = t("past.over", { from: count(epochs[0]), to: count(epochs.at(-1)) });
  return html`<section class="past-of" aria-labelledby="h-past"><header><h3 id="h-past">${t("past")}</h3><span class="note">${range}</span></header>
    <${Plot} height=${TALL} paint=${paint(shown, most)} of=${of} label=${t("past.label", { n: shown.length, most: figure(most), range })} />
    <ul class="past-rows">${shown.map((one, k) => html`<li key=${one.row}><b class=${`c-${SERIES[k]}`}>${t("data.row", { n: count(one.row) })}</b> ${[t("data.fact.mean", { value: figure(one.mean) }), result.classes ? t("data.fact.forgotten", { n: one.forgotten }) : "", result.classes ? (one.learned === null ? t("past.wrong") : t("data.fact.late", { epoch: one.learned })) : ""].filter(Boolean).join(", ")}</li>`)}</ul></section>`;
}

// Why there is no record of a split, and what records it.
export function Record({ split, why }) {
  const steers = useStore(maySteer), fate = useStore((state) => state.fates[HOOK]), name = split === "training" ? HOOK : `${HOOK}_${split}`;
  const there = useStore((state) => state.hooks.some((one) => one.name === name)), unseen = why.includes(UNSEEN);
  const attach = () => command("attach", { name, hook: { type: HOOK, on: split, every: seldom() } }, HOOK, `${t("did.attach")} ${name}`);
  return html`<div class="unseen wide"><p>${!unseen ? why : there ? t("past.waits") : steers ? t("past.could") : why}</p>${unseen && steers && !there ? html`<button type="button" disabled=${fate?.state === "pending"} onClick=${attach}>${t("past.attach")}</button>` : null}
    ${fate ? html`<${Fate} fate=${fate} />` : null}</div>`;
}
