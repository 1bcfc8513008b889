// What the summary says about the results of a run that has ended, such as a network that is no better than a baseline.
import { html } from "../lib.js";
import { Icon } from "./icon.js";
import { ENDS, useStore } from "../store.js";
import { t } from "../words.js";

export function Sentences({ of }) {
  return of.map((text) => html`<p class="advice" key=${text}><${Icon} name="warn" /><span>${text}</span></p>`);
}

export function Advice() {
  const over = useStore((state) => ENDS.includes(state.status?.status)), said = useStore((state) => state.results.advice);
  return over && said?.length ? html`<div role="note" aria-label=${t("advice")}><${Sentences} of=${said} /></div>` : null;
}
