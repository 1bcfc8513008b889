// One value large, with the moments before and after it: the arrow keys step, as does the range.
import { html, useEffect, useRef } from "../lib.js";
import { Icon } from "../widgets/icon.js";
import { useAsked } from "../insight/asking.js";
import { useStore } from "../store.js";
import { count } from "../numbers.js";
import { t } from "../words.js";
import { same } from "./arrange.js";
import { Large, when } from "./medium.js";
import { useMedium } from "./values.js";

const MOST = 1000; // moments that are stepped through

const OWN = "input, audio, pre, .scroll"; // elements with arrow keys of their own

// The place of an entry among those that are stepped through, or of the last one before it.
function placeOf(all, entry) {
  const exact = all.findIndex((one) => same(one, entry));
  return exact >= 0 ? exact : Math.max(0, all.findLastIndex((one) => one.branch === entry.branch && one.iteration <= entry.iteration));
}

export function Viewer({ name, entry, known, show }) {
  const dialog = useRef(null), trainer = useStore((state) => state.trainer), version = useStore((state) => state.media);
  const { result } = useAsked("media", { trainer, name, most: MOST }, JSON.stringify(version)), all = result?.[name]?.entries ?? known;
  const at = placeOf(all, entry), total = result?.[name]?.total ?? all.length, { value, why } = useMedium(entry);
  useEffect(() => { dialog.current.showModal(); }, []);
  const go = (to) => { const one = all[Math.min(all.length - 1, Math.max(0, to))]; if (one) show(one); };
  const key = (event) => {
    const way = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: all.length - 1 }[event.key];
    if (way === undefined || event.target.closest(OWN)) return;
    event.preventDefault();
    go(way);
  };
  return html`<dialog class="viewer" ref=${dialog} aria-labelledby="h-viewer" onClose=${() => show(null)} onKeyDown=${key}>
    <header><h2 id="h-viewer">${name}</h2><p class="note" role="status">${when(entry)}${entry.is_left ? `, ${t("media.left")}` : ""}</p></header>
    <div class=${`medium-large ${entry.kind}`}>${value ? html`<${Large} name=${name} entry=${entry} value=${value} />` : html`<p class="empty">${why || t("loading")}</p>`}</div>
    ${entry.caption ? html`<p class="note">${entry.caption}</p>` : null}
    <div class="steps"><button class="icon" type="button" aria-label=${t("media.before")} disabled=${at === 0} onClick=${() => go(at - 1)}><${Icon} name="left" /></button>
      <input type="range" min="0" max=${Math.max(1, all.length - 1)} value=${at} disabled=${all.length < 2} aria-label=${t("media.moment")} aria-valuetext=${when(entry)} onInput=${(event) => go(Number(event.target.value))} />
      <button class="icon" type="button" aria-label=${t("media.after")} disabled=${at >= all.length - 1} onClick=${() => go(at + 1)}><${Icon} name="right" /></button>
      <span class="note">${total > all.length ? "" : t("media.of", { at: count(at + 1), n: count(all.length) })}</span>
      <form method="dialog"><button class="primary">${t("close")}</button></form></div>
  </dialog>`;
}
