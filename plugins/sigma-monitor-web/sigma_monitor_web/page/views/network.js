// The network: its graph, its layers with the shapes on the wires, and the details of the selected one.
import { useMoment } from "../film.js";
import { html, useEffect, useRef, useState } from "../lib.js";
import { Activity } from "../insight/activity.js";
import { seldom, useAsked, usePace } from "../insight/asking.js";
import { Weights } from "../insight/paint.js";
import { Ridges, remember } from "../insight/ridges.js";
import { inBytes } from "../network/boxes.js";
import { Drawing } from "../network/drawing.js";
import { lenderOf } from "../network/groups.js";
import { sharesOf } from "../network/shares.js";
import { Fate } from "../widgets/fate.js";
import { command } from "../steer.js";
import { maySteer, ofTrainer, useSpot, useStore } from "../store.js";
import { count, exact, figure, percent, tail } from "../numbers.js";
import { t } from "../words.js";

const OFTEN = 1500; // milliseconds between two looks at a layer
const NARROW = "(max-width: 1240px)";
const LOW = 240; // pixels of the details that are seen below the graph, at least
const NONE = [];
const TOLD = ["units", "activation", "rate", "filters", "size", "stride", "padding", "targets", "weight", "section"];
const USUAL = { weight: 1, padding: 0 }; // not worth telling
const SWAPS = ["swap", "undo", "rewind", "reset"]; // commands after which other components may be in force

export const shape = (sides) => (sides && sides.length ? sides.map(count).join(" × ") : t("network.scalar"));
const size = (sides) => sides.reduce((product, one) => product * one, 1);
const parameters = (layer) => Object.values(layer.parameters).reduce((sum, sides) => sum + size(sides), 0);
const weighty = (layer) => Object.values(layer.parameters).some((sides) => size(sides) > 1);
const setting = (value) => (Array.isArray(value) ? value.map(setting).join(" × ") : typeof value === "number" ? exact(value) : String(value).split(":").at(-1));
const settings = (layer) => TOLD.filter((name) => ![null, undefined, "", "identity"].includes(layer.settings[name]) && layer.settings[name] !== USUAL[name]).map((name) => [name, setting(layer.settings[name])]);

// The number of the last of them in the journal: it repeats the requests about the network.
const lastSwap = (journal) => journal.findLast?.(([, row]) => SWAPS.includes(row.command))?.[0] ?? 0;

function Layer({ layer, before, most, chosen, choose }) {
  const own = parameters(layer), bar = useRef(null), told = settings(layer).find(([name]) => name !== "targets" && name !== "section");
  const odd = layer.sources.length > 1 || (layer.sources.length === 1 && layer.sources[0] !== before?.name);
  useEffect(() => bar.current?.style.setProperty("--share", `${Math.max(0.6, (own / most) * 100)}%`), [own, most]);
  return html`<li>${before && layer.sources.length ? html`<p class="wire">${odd ? t("network.from", { names: layer.sources.join(", ") }) : before.shape ? shape(before.shape) : ""}</p>` : null}
    <button class=${`layer ${weighty(layer) ? "" : "flat"}`} type="button" aria-pressed=${String(chosen)} onClick=${choose}><b>${layer.name}</b>
      <span>${weighty(layer) ? count(own) : told ? (told[0] === "rate" ? `${t("name.rate")} ${told[1]}` : told[1]) : layer.sources.length ? "" : shape(layer.shape)}</span>
      ${weighty(layer) ? html`<small>${[settings(layer).find(([name]) => name === "activation")?.[1], Object.values(layer.parameters).map(shape)[0]].filter(Boolean).join(", ")}</small><small>${t("network.parameters", { n: own })}</small><i ref=${bar}></i>` : null}</button></li>`;
}

// What the layer takes of a step, and holds, as far as that is estimated; and whose parameters it uses.
function estimates({ layer, layers, work }) {
  const own = sharesOf(work).of.get(layer.name), sizes = Object.entries(own?.sizes ?? {}).filter(([, bytes]) => bytes);
  const lent = Object.entries(layer.shared ?? {}).map(([name, address]) => [t("network.shared", { name: name.replaceAll("_", " ") }), lenderOf(layers, address) ?? address]);
  return [...lent, ...(own?.time ? [[t("network.operations"), t("network.operations.of", { share: percent(own.time, 1) })]] : []),
    ...(sizes.length ? [[t("network.bytes"), sizes.map(([name, bytes]) => t(`network.bytes.${name}`, { bytes: inBytes(bytes) })).join(", ")]] : [])];
}

function Facts({ layer, layers, work, seen }) {
  const facts = [[t("network.kind"), layer.component], [t("network.output"), layer.shape ? shape(layer.shape) : "–"], ...Object.entries(layer.parameters).filter(([, sides]) => size(sides) > 1 || sides.length).map(([address, sides]) => [tail(address), shape(sides)]),
    ...(weighty(layer) ? [[t("network.count"), count(parameters(layer))]] : []), ...settings(layer).map(([name, value]) => [t(`setting.${name}`), value]), ...estimates({ layer, layers, work })];
  const broken = Object.values(seen?.parameters ?? {}).reduce((sum, one) => sum + (one.unusual ?? 0), 0);
  return html`<dl class="facts">${facts.map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}
    ${broken ? html`<div class="bad"><dt>${t("network.broken")}</dt><dd>${count(broken)}</dd></div>` : null}</dl>`;
}

// What a hook published of a parameter: its addresses end like those of parameters.
const observed = (all, address, trainer) => Object.entries(all ?? {}).find(([name]) => name.endsWith(address.slice(`${trainer}.network.layers`.length)))?.[1];

// How many units the filters are of: the greatest axis beside the inputs.
const units = (layer) => Math.max(...Object.values(layer.parameters).map((sides) => (sides.length === 2 ? sides[1] : sides.length > 2 ? sides[0] : 0)));

// A deviation of a histogram that came without one.
function deviation({ edges, counts }) {
  const middles = counts.map((_, i) => (edges[i] + edges[i + 1]) / 2), all = counts.reduce((a, b) => a + b, 0) || 1;
  const mean = middles.reduce((sum, one, i) => sum + one * counts[i], 0) / all;
  return Math.sqrt(middles.reduce((sum, one, i) => sum + (one - mean) ** 2 * counts[i], 0) / all);
}

function Spread({ what, address, found, run, epoch }) {
  const steers = useStore(maySteer), fate = useStore((state) => state.fates[`observe.${what}`]), name = t(`network.${what}`);
  const head = (more) => html`<header><h3>${name}</h3><span class="note">${more}</span></header>`;
  if (found?.histogram) {
    const rows = remember(`${run} ${what} ${address}`, epoch, found.histogram);
    return html`<div class="spread">${head(t("network.deviation", { value: figure(found.deviation ?? deviation(found.histogram)) }))}<${Ridges} rows=${rows} name=${name} /></div>`;
  }
  if (what === "weights") return html`<div class="spread">${head("")}<p class="empty">${t("network.nothing")}</p></div>`;
  const attach = () => command("attach", { name: what, hook: { type: "histogram", of: `${what}.**`, every: seldom() } }, `observe.${what}`, `${t("did.attach")} histogram`);
  return html`<div class="spread">${head("")}<div class="unseen"><p>${t(`network.unseen.${what}`)}</p>${steers ? html`<button type="button" onClick=${attach} disabled=${fate?.state === "pending"}>${t("network.observe")}</button>` : null}
    ${fate && fate.state !== "idle" ? html`<${Fate} fate=${fate} />` : null}</div></div>`;
}

function Filters({ filters, all }) {
  return html`<section class="filters" aria-labelledby="h-filters"><header class="card-head"><h2 id="h-filters">${t("network.filters")}</h2><span class="note">${t("network.filters.of", { shown: count(filters.length), all: count(all), width: filters[0].width, height: filters[0].height })}</span>
      <span class="key push"><i class="below"></i>${t("network.below")}<i class="above"></i>${t("network.above")}</span></header>
    <div class="tiles" role="img" aria-label=${t("network.filters.label", { n: count(filters.length) })}>${filters.map((one, i) => html`<${Weights} key=${i} picture=${one} />`)}</div></section>`;
}

function Chosen({ layer, layers, work, trainer, place }) {
  const moment = useMoment(), now = usePace(OFTEN), pace = "at" in moment ? "" : now, { result, why } = useAsked("layer", weighty(layer) ? { layer: layer.name, trainer, ...moment } : null, pace);
  const status = useStore(ofTrainer), folder = useStore((state) => `${state.hello?.process} ${state.hello?.folder}`), [picked, pick] = useState("");
  const seen = result, addresses = Object.keys(layer.parameters).filter((address) => size(layer.parameters[address]) > 1);
  const address = addresses.includes(picked) ? picked : addresses.toSorted((a, b) => size(layer.parameters[b]) - size(layer.parameters[a]))[0];
  const earlier = "at" in moment, then = useStore((state) => state.states.find((one) => one.iteration === seen?.at)?.epoch);
  const common = earlier ? { address, run: `${folder} ${status?.branch} film`, epoch: then ?? 0 } : { address, run: `${folder} ${status?.branch}`, epoch: status?.epoch ?? 0 };
  return html`<section class="card chosen" aria-labelledby="h-layer" ref=${place}><div class="card-head"><h2 id="h-layer">${layer.name}</h2><code class="note">${trainer}.network.layers.${layer.name}</code>
      ${addresses.length > 1 ? html`<div class="seg push" role="group" aria-label=${t("network.array")}>${addresses.map((one) => html`<button key=${one} type="button" aria-pressed=${String(one === address)} onClick=${() => pick(one)}>${tail(one)}</button>`)}</div>` : null}</div>
    <${Facts} layer=${layer} layers=${layers} work=${work} seen=${seen} />
    ${!weighty(layer) ? html`<p class="empty">${t("network.flat")}</p>` : why ? html`<p class="empty">${t("network.unread", { why })}</p>` : html`<div class="spreads">
      <${Spread} what="weights" found=${seen?.parameters[address]} ...${common} />${earlier ? html`<p class="empty">${t("film.weights")}</p>` : html`<${Spread} what="gradients" found=${observed(seen?.gradients, address, trainer)} ...${common} /><${Spread} what="updates" found=${observed(seen?.updates, address, trainer)} ...${common} />`}</div>`}
    ${"targets" in layer.settings ? null : html`<${Activity} layer=${layer} trainer=${trainer} pace=${pace} />`}
    ${seen?.filters.length ? html`<${Filters} filters=${seen.filters} all=${units(layer)} />` : null}
  </section>`;
}

export function Network() {
  const trainer = useStore((state) => state.trainer), changes = useStore((state) => `${state.status?.status} ${lastSwap(state.journal)}`);
  const { result: layers, why } = useAsked("network", { trainer }, changes), work = useAsked("work", { trainer }, changes).result ?? NONE, [name, choose] = useSpot("network.layer", ""), place = useRef(null);
  if (why || (layers && !layers.length)) return html`<section class="card" aria-labelledby="h-layers"><div class="card-head"><h2 id="h-layers">${t("network.layers")}</h2></div><p class="empty">${why || t("network.none")}</p></section>`;
  if (!layers) return html`<section class="card"><p class="empty">${t("loading")}</p></section>`;
  const most = Math.max(1, ...layers.map(parameters)), all = layers.filter(weighty).reduce((sum, layer) => sum + parameters(layer), 0);
  const chosen = layers.find((layer) => layer.name === name) ?? layers.find(weighty) ?? layers[0];
  const lead = () => { if (matchMedia(NARROW).matches || place.current?.getBoundingClientRect().top > innerHeight - LOW) place.current?.scrollIntoView({ block: "start" }); };
  const show = (layer) => { choose(layer.name); requestAnimationFrame(lead); };
  return html`<${Drawing} key=${`${trainer} ${layers.map((one) => one.name)}`} layers=${layers} work=${work} chosen=${chosen.name} choose=${show} />
    <section class="card" aria-labelledby="h-layers"><div class="card-head"><h2 id="h-layers">${t("network.layers")}</h2><span class="note">${count(all)} ${t("network.parameters", { n: all })}</span></div>
      <ol class="chain">${layers.map((layer, i) => html`<${Layer} key=${layer.name} layer=${layer} before=${layers[i - 1]} most=${most} chosen=${layer === chosen} choose=${() => show(layer)} />`)}</ol></section>
    <${Chosen} key=${chosen.name} layer=${chosen} layers=${layers} work=${work} trainer=${trainer} place=${place} />`;
}
