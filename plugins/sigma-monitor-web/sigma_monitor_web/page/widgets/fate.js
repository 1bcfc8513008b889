// What became of a command, at the place where it was given.
import { html } from "../lib.js";
import { Icon } from "./icon.js";
import { count } from "../numbers.js";
import { t } from "../words.js";

const SIGNS = { idle: "dot", pending: "wait", applied: "check", refused: "no" };

// `fate`: {state, at, why, by}; `stays`: the value kept after a refusal; children: the possible actions.
export function Fate({ fate, idle = t("fate.idle"), stays = "", later = "", children }) {
  const state = fate?.state === "queued" ? "pending" : (fate?.state ?? "idle");
  return html`<p class=${`fate ${state}`}><${Icon} name=${SIGNS[state] ?? "dot"} />${text(state, fate, idle, stays)}${later && state === "applied" ? html`<span>${later}</span>` : null}${children}</p>`;
}

function text(state, fate, idle, stays) {
  if (state === "pending") return html`<span><b>${t("fate.pending")}</b>, ${t("fate.waits")}</span>`;
  if (state === "applied") return html`<span><b>${fate.at === null || fate.at === undefined ? t("fate.done") : t("fate.applied", { at: count(fate.at) })}</b>${fate.by ? `, ${t("fate.by", { who: fate.by })}` : ""}</span>`;
  if (state === "refused") return html`<span><b>${t("fate.refused")}</b> ${fate.why}${stays === "" ? "" : ` ${t("fate.stays", { value: stays })}`}</span>`;
  return html`<span>${idle}</span>`;
}
