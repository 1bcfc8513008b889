// Pictures that hooks drew into the run folder, such as the input that each output looks for.
import { html } from "../lib.js";
import { seldom, useAsked, usePace } from "./asking.js";
import { Fate } from "../widgets/fate.js";
import { command } from "../steer.js";
import { maySteer, useStore } from "../store.js";
import { t } from "../words.js";

const OFTEN = 2000, SHOWN = 60;
const HOOK = "target_maximisation";

const spoken = (name) => name.replace(/[-_]+/g, " ");

function Dreams() {
  const steers = useStore(maySteer), fate = useStore((state) => state.fates.dreams);
  return html`<div class="unseen wide"><p>${t("gallery.could")}</p>${steers ? html`<button type="button" disabled=${fate?.state === "pending"} onClick=${() => command("attach", { name: "dreams", hook: { type: HOOK, every: seldom() } }, "dreams", `${t("did.attach")} dreams`)}>${t("gallery.attach")}</button>` : null}
    ${fate ? html`<${Fate} fate=${fate} />` : null}</div>`;
}

// The directory and the name of a picture.
const parts = (address) => ({ folder: address.split("/").at(-2) ?? "", name: address.split("/").at(-1).replace(/\.png$/, "") });

export function Gallery({ picture, trainer }) {
  const pace = usePace(OFTEN), { result } = useAsked("pictures", { trainer }, pace), all = (result ?? []).map((one) => ({ ...one, ...parts(one.address) }));
  const hook = useStore((state) => state.hooks.find((one) => one.component.endsWith(HOOK)));
  const newest = all.length ? { folder: all[0].folder, pictures: all.filter((one) => one.folder === all[0].folder).sort((a, b) => a.name.localeCompare(b.name, "en", { numeric: true })) } : null;
  const waits = hook && !newest;
  if (!picture && !newest && !hook) return null;
  return html`<section class="card" aria-labelledby="h-gallery"><div class="card-head"><h2 id="h-gallery">${newest && newest.folder !== "images" ? spoken(newest.folder) : t("gallery")}</h2>${hook ? html`<span class="note">${t("gallery.hook")} <code>${hook.name}</code></span>` : null}</div>
    ${newest ? html`<ul class="gallery">${newest.pictures.slice(0, SHOWN).map((one) => html`<li key=${one.name}><img src=${`data:image/png;base64,${one.png}`} alt=${spoken(one.name)} /><span>${spoken(one.name).replace(/^output /, "")}</span></li>`)}</ul>` : waits ? html`<p class="empty">${t("gallery.waits")}</p>` : html`<${Dreams} />`}</section>`;
}
