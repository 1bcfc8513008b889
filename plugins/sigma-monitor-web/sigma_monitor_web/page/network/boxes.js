// What is written in the boxes of a drawing, and how large they are.
import { measure } from "../charts/paint.js";
import { count, exact, percent } from "../numbers.js";
import { t } from "../words.js";
import { together } from "./shares.js";

export const TITLE = 13; // sizes of letters, in pixels
export const LINE = 11.5;
const BOLD = 600, PADDING = 24, NARROWEST = 88, WIDEST = 256; // pixels
const TOP = 22, STEP = 16, FOOT = 10, BARS = 22; // pixels: the first line, between lines, below the last one, for the shares
const TELLING = 0.005; // the share from which on it is shown

export const sides = (shape) => (shape?.length ? shape.map(count).join(" × ") : shape ? t("network.scalar") : "");
export const parametersOf = (layer) => Object.values(layer.parameters).reduce((sum, shape) => sum + shape.reduce((product, one) => product * one, 1), 0);

const few = (parts, most) => (parts.length > most ? [...parts.slice(0, most), "…"] : parts);

// What a repeated block consists of, or from where to where a chain goes.
export function groupName({ kind, times, period, names }, layers) {
  if (kind === "chain") return t("graph.chain", { n: names.length, first: names[0], last: names.at(-1) });
  const kinds = names.slice(0, period).map((name) => layers.find((one) => one.name === name)?.component ?? name);
  return `${times} × ${period === 1 ? kinds[0] : `(${few(kinds, 3).join(" + ")})`}`;
}

const optimiserName = (name) => name.split(".").at(-1);

// The optimisers that update a layer, if there are several: [index, ...].
export const ownersOf = (node, optimisers) => (optimisers.length < 2 ? [] : optimisers.flatMap((one, i) => (node.layers.some((layer) => one.updates.includes(layer.name)) ? [i] : [])));

function linesOf(node, optimisers) {
  if (node.kind === "optimiser") return [t("graph.updates", { n: node.optimiser.updates.length })];
  const number = node.layers.reduce((sum, layer) => sum + parametersOf(layer), 0), parameters = number ? [t("graph.parameters", { n: count(number) })] : [];
  const by = ownersOf(node, optimisers).map((i) => optimiserName(optimisers[i].name));
  if (node.group) return [[t("graph.layers", { n: node.layers.length }), ...parameters].join(" · "), ...(by.length ? [by.join(", ")] : [])];
  const [layer] = node.layers, weight = layer.settings.weight;
  if (node.kind === "cost") return [typeof weight === "number" && weight !== 1 ? t("graph.weight", { weight: exact(weight) }) : t("graph.cost")];
  return [[sides(layer.shape), ...parameters].filter(Boolean).join(" · "), ...(by.length ? [by.join(", ")] : [])].filter(Boolean);
}

const shareText = (share) => (share < 0.01 ? t("graph.little") : `${percent(share, 0)} %`);

// A box with all that it shows: {title, lines, shares: [{name, value, text}], width, height}.
export function boxOf(node, { layers, optimisers, shares }) {
  const several = optimisers.length > 1, title = node.group ? groupName(node.group, layers) : node.kind !== "optimiser" ? node.layers[0].name : several ? optimiserName(node.id) : node.optimiser.component;
  const lines = linesOf(node, optimisers), known = together(shares, node.kind === "optimiser" ? [node.id] : node.layers.map((one) => one.name));
  const seen = ["time", "memory"].flatMap((name) => (known?.[name] >= TELLING ? [{ name, value: known[name], text: t(`graph.${name}`, { share: shareText(known[name]) }) }] : []));
  const texts = [measure(title, TITLE, BOLD), ...lines.map((one) => measure(one, LINE)), seen.reduce((sum, one) => sum + measure(one.text, LINE), 0) + 16 * (seen.length > 1)];
  const width = Math.min(WIDEST, Math.max(NARROWEST, Math.ceil(Math.max(...texts)) + PADDING));
  return { title, lines, shares: seen, known, width, height: TOP + lines.length * STEP + (seen.length ? BARS : 0) + FOOT };
}

// A text that is no wider than `room`.
export function clipped(text, room, size, weight) {
  if (measure(text, size, weight) <= room) return text;
  let length = text.length - 1;
  while (length > 1 && measure(`${text.slice(0, length)}…`, size, weight) > room) length -= 1;
  return `${text.slice(0, length)}…`;
}

// A box in words, for those who cannot see it; `after`: the titles of the boxes that its arrows lead to.
export function spokenBox(box, after) {
  const told = [box.title, ...(box.group || box.kind === "optimiser" ? [] : [box.layers[0].component]), ...box.lines, ...box.shares.map((one) => one.text), ...(after.length ? [t("graph.to", { names: after.join(", ") })] : [])];
  return told.join(", ");
}

const UNITS = ["B", "kB", "MB", "GB", "TB"];

// A number of bytes as people read it.
export function inBytes(number) {
  const power = number < 1000 ? 0 : Math.min(UNITS.length - 1, Math.floor(Math.log10(number) / 3));
  return `${exact(Number((number / 1000 ** power).toPrecision(3)))} ${UNITS[power]}`;
}
