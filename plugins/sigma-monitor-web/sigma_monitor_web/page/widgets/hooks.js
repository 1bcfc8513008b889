// The hooks in the order in which they run, with the reasons; attach, detach, and when and how often each fires.
import { html, useEffect, useState } from "../lib.js";
import { Fate } from "./fate.js";
import { Menu } from "./menu.js";
import { Settings, tableOf } from "./settings.js";
import { request } from "../session.js";
import { assign, command } from "../steer.js";
import { maySteer, useStore } from "../store.js";
import { typed } from "../numbers.js";
import { t } from "../words.js";

const bare = (component) => (component ?? "").split(":").at(-1);
const often = (hook) => (typed(hook.every) || typed(hook.when)).replace(/^every /, "");

function timing(hook) {
  if (hook.when && hook.when !== "") return `when ${hook.when}`; // the kernel's own words, as typed
  return hook.every ? `every ${often(hook)}` : "";
}

function Change({ hook, trainer, steers }) {
  const base = `${trainer}.hooks.${hook.name}`;
  return ["every", "when"].map((field) => html`<${Timing} key=${field} field=${field} address=${`${base}.${field}`} was=${typed(hook[field]).replace(/^every /, "")} steers=${steers} />`);
}

function Timing({ field, address, was, steers }) {
  const [text, type] = useState(was), fate = useStore((state) => state.fates[address]);
  const send = () => { if (text !== was) assign(address, text, was, address); };
  return html`<label class="stack">${t(`hook.${field}.label`)}<input type="text" value=${text} autocomplete="off" spellcheck=${false} disabled=${!steers} onInput=${(event) => type(event.target.value)}
    onKeyDown=${(event) => { if (event.key === "Enter") send(); }} onBlur=${send} /></label>${fate ? html`<${Fate} fate=${fate} />` : null}`;
}

function Row({ hook, place, trainer, steers }) {
  const at = `hook.${hook.name}`, fate = useStore((state) => state.fates[at]);
  const reasons = hook.reasons ?? [];
  return html`<li><span class="n">${place}</span><p class="w" title=${hook.component}>${hook.name}<small>${bare(hook.component)}</small></p>
    <p class="note" title=${reasons.join("; ") || undefined}>${hook.muted ? t("hook.muted") : timing(hook)}</p>
    <${Menu} label=${t("hook.menu", { name: hook.name })}>${() => html`<p class="menu-title"><b>${hook.name}</b> <code>${hook.component}</code></p>
      <${Change} hook=${hook} trainer=${trainer} steers=${steers} />
      <p class="note">${reasons.length ? t("hook.why") : t("hook.why.none")}</p>${reasons.length ? html`<ul class="reasons">${reasons.map((one) => html`<li key=${one}>${one}</li>`)}</ul>` : null}
      ${hook.background ? html`<p class="note">${t("hook.background")}</p>` : null}
      <button type="button" disabled=${!steers} onClick=${() => command("detach", { name: hook.name }, at, `${t("did.detach")} ${hook.name}`)}>${t("hook.detach")}</button>
      ${fate ? html`<${Fate} fate=${fate} />` : null}`}<//></li>`;
}

// A list of components of a kind, asked for once.
export function useComponents(kind) {
  const [found, set] = useState(null), ready = useStore((state) => state.connection === "online" && Boolean(state.hello));
  useEffect(() => {
    if (!ready) return undefined;
    let here = true;
    request("components", { kind }).then((list) => { if (here) set(list); }).catch(() => { if (here) set([]); });
    return () => { here = false; };
  }, [kind, ready]);
  return found;
}

function Attach({ close }) {
  const known = useComponents("hook"), fate = useStore((state) => state.fates["hook.attach"]);
  const [type, choose] = useState(""), [name, call] = useState(""), [fields, change] = useState({}), [more, changeMore] = useState("");
  const component = known?.find((one) => one.name === type);
  const send = (event) => {
    event.preventDefault();
    const as = name.trim() || bare(type);
    command("attach", { name: as, hook: tableOf(type, fields, more) }, "hook.attach", `${t("did.attach")} ${as}`).then((done) => { if (done) close(); });
  };
  return html`<form class="attach" onSubmit=${send}>
    <label class="stack">${t("hook.which")}<select value=${type} onChange=${(event) => { choose(event.target.value); change({}); }}><option value="">${known ? t("choose") : t("loading")}</option>
      ${(known ?? []).map((one) => html`<option key=${one.name} value=${one.name}>${one.name}</option>`)}</select></label>
    ${component?.summary ? html`<p class="note">${component.summary}</p>` : null}
    ${type ? html`<label class="stack">${t("hook.name")}<input type="text" value=${name} placeholder=${bare(type)} autocomplete="off" spellcheck=${false} onInput=${(event) => call(event.target.value)} /></label>
      <${Settings} component=${component} fields=${fields} change=${change} more=${more} changeMore=${changeMore} />` : null}
    <button class="primary" disabled=${!type}>${t("hook.attach")}</button>${fate && fate.state !== "applied" ? html`<${Fate} fate=${fate} />` : null}</form>`;
}

export function Hooks() {
  const hooks = useStore((state) => state.hooks), trainer = useStore((state) => state.trainer), steers = useStore(maySteer);
  return html`<section class="card" aria-labelledby="h-hooks">
    <div class="card-head"><h2 id="h-hooks">${t("hooks")}</h2><span class="note">${t("hooks.order")}</span>
      ${steers ? html`<${Menu} class="push" label=${t("hook.attach.long")} text=${t("hook.attach")} icon="down">${(close) => html`<${Attach} close=${close} />`}<//>` : null}</div>
    ${hooks.length ? html`<ol class="hooks">${hooks.map((hook, i) => html`<${Row} key=${hook.name} hook=${hook} place=${i + 1} trainer=${trainer} steers=${steers} />`)}</ol>` : html`<p class="empty">${t("hooks.none")}</p>`}
  </section>`;
}
