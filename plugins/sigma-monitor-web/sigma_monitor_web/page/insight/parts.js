// The parts of the view of the data: rows in an order, their map, the profile.
import { html } from "../lib.js";
import { store, useStore } from "../store.js";
import { t } from "../words.js";

export function Parts() {
  const part = useStore((state) => state.part);
  return html`<div class="seg" role="group" aria-label=${t("view.data")}>${["rows", "map", "profile"].map((name) => html`<button key=${name} type="button" aria-pressed=${String(part === name)} onClick=${() => store.set({ part: name })}>${t(`data.part.${name}`)}</button>`)}</div>`;
}
