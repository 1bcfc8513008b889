// The optimiser and the backend: the current ones, and a list to swap from.
import { html, useState } from "../lib.js";
import { Fate } from "./fate.js";
import { Settings, tableOf } from "./settings.js";
import { useComponents } from "./hooks.js";
import { command } from "../steer.js";
import { maySteer, useStore } from "../store.js";
import { t } from "../words.js";

function Slot({ slot, kind }) {
  const known = useComponents(kind), steers = useStore(maySteer), place = `swap.${slot}`, fate = useStore((state) => state.fates[place]);
  const [type, choose] = useState(""), [fields, change] = useState({}), [more, changeMore] = useState("");
  const component = known?.find((one) => one.name === type), current = known?.find((one) => one.current)?.name ?? "";
  const send = () => command("swap", { slot, component: tableOf(type, fields, more) }, place, `${t("did.swap")} ${slot}`).then((done) => { if (done) choose(""); });
  if (!known?.length) return null;
  return html`<div class="knob"><div class="knob-top"><label for=${place}>${t(`slot.${kind}`)}</label>
      <select id=${place} class="push" disabled=${!steers} value=${type} onChange=${(event) => { choose(event.target.value); change({}); }}>
        <option value="">${current || t("swap.keep")}</option>${known.filter((one) => !one.current).map((one) => html`<option key=${one.name} value=${one.name}>${one.name}</option>`)}</select></div>
    ${type ? html`${component?.summary ? html`<p class="note">${component.summary}</p>` : null}<${Settings} component=${component} fields=${fields} change=${change} more=${more} changeMore=${changeMore} />
      <div class="row"><button class="primary" type="button" onClick=${send}>${t("swap.do")}</button><button class="quiet" type="button" onClick=${() => choose("")}>${t("cancel")}</button></div>` : null}
    ${fate ? html`<${Fate} fate=${fate} />` : null}</div>`;
}

export function Swap() {
  return html`<section class="card" aria-labelledby="h-swap"><div class="card-head"><h2 id="h-swap">${t("swap")}</h2><span class="note">${t("swap.note")}</span></div>
    <${Slot} slot="optimiser" kind="optimiser" /><${Slot} slot="backend" kind="backend" /></section>`;
}
