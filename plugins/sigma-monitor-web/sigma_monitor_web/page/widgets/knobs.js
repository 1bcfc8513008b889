// The live values: those that are steered most, those that a person looked for, and a field to find any other.
import { html, useEffect } from "../lib.js";
import { Combobox } from "./combobox.js";
import { Knob } from "./knob.js";
import { Icon } from "./icon.js";
import { memory, store, useStore } from "../store.js";
import { told } from "../charts/marks.js";
import { Settings } from "../origin.js";
import { find } from "../stage.js";
import { tail, title } from "../numbers.js";
import { t } from "../words.js";

const SHOWN = 5; // without having been asked for
const FIRST = [/^[^.]+\.(optimiser|optimisers\.[^.]+)\.learning_rate$/, /dropout[^.]*\.rate$/, /^[^.]+\.batch_size$/, /^[^.]+\.epochs$/, /hooks\.[^.]+\.when$/, /(^|\.)(momentum|weight_decay|l2|strength)$/];

const rank = (entry) => {
  const at = FIRST.findIndex((one) => one.test(entry.address));
  return at < 0 ? Infinity : at;
};

// The addresses to show: the pinned ones after the usual ones, never more than a handful unasked.
export function shown(entries, pinned, trainer) {
  const settable = entries.filter((entry) => entry.settable && entry.type !== "array");
  const mine = settable.filter((entry) => entry.address.startsWith(`${trainer}.`) && rank(entry) < Infinity && !(tail(entry.address) === "when" && !entry.value));
  const usual = mine.sort((a, b) => rank(a) - rank(b)).slice(0, SHOWN);
  const asked = pinned.map((address) => settable.find((entry) => entry.address === address)).filter(Boolean);
  return [...usual, ...asked.filter((entry) => !usual.includes(entry))];
}

const choices = (entries, text) => {
  const wanted = text.toLowerCase().replaceAll(" ", "_");
  const settable = entries.filter((entry) => entry.settable && entry.type !== "array");
  const fits = settable.filter((entry) => entry.address.toLowerCase().includes(wanted) || title(entry.address).toLowerCase().includes(text.toLowerCase()));
  return fits.sort((a, b) => a.address.length - b.address.length).map((entry) => ({ value: entry.address, note: entry.unit }));
};

// The current value of a setting that acts at the next epoch.
const inForce = (entries, { address }) => (address.endsWith(".batch_size") ? entries.find((one) => one.address === address.replace(/batch_size$/, "data.batch_size"))?.value ?? undefined : undefined);

// The settings that the journal tells of.
function useSettings() {
  const journal = useStore((state) => state.journal), trainer = useStore((state) => state.trainer), branches = useStore((state) => state.branches), settings = new Settings();
  told(journal, trainer, branches, undefined, settings);
  return settings;
}

// One of them by itself, as it is in the list; `place`: where it stands.
export function Single({ entry, place }) {
  const entries = useStore((state) => state.entries), settings = useSettings();
  return html`<${Knob} entry=${entry} last=${settings.origin(entry)} force=${inForce(entries, entry)} place=${place} />`;
}

export function Knobs() {
  const entries = useStore((state) => state.entries), pinned = useStore((state) => state.pinned), trainer = useStore((state) => state.trainer);
  const settings = useSettings(), name = useStore((state) => state.hello?.name ?? ""), undo = useStore((state) => state.fates.undo);
  useEffect(() => { if (name) store.set({ pinned: memory.get(`pinned.${name}`, []) }); }, [name]);
  const put = (next) => { store.set({ pinned: next }); memory.set(`pinned.${name}`, next); };
  const add = (address) => {
    if (!entries.some((entry) => entry.address === address)) return;
    if (!pinned.includes(address)) put([...pinned, address]);
    requestAnimationFrame(() => find(`#k-${address.replace(/\W/g, "-")}`)?.focus());
  };
  const all = shown(entries, pinned, trainer);
  return html`<section class="card" id="live-values" aria-labelledby="h-live">
    <div class="card-head"><h2 id="h-live">${t("live")}</h2><${Combobox} id="find-address" class="push" hint="/" label=${t("live.find")} placeholder=${t("live.find")} options=${(text) => choices(entries, text)} chosen=${add} /></div>
    ${undo?.state === "refused" ? html`<p class="fate refused alone"><${Icon} name="no" /><span>${undo.why}</span></p>` : null}
    <div class="knobs">${all.length ? all.map((entry) => html`<${Knob} key=${entry.address} entry=${entry} last=${settings.origin(entry)} force=${inForce(entries, entry)} />`) : html`<p class="empty">${t("live.none")}</p>`}</div>
  </section>`;
}
