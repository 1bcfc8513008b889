// Numbers, durations and addresses as people read them, in the language of the page.
import { locale, t } from "./words.js";

const formats = new Map();

function format(options) {
  const key = locale() + JSON.stringify(options);
  if (!formats.has(key)) formats.set(key, new Intl.NumberFormat(locale(), options));
  return formats.get(key);
}

function timeFormat(options) {
  const key = locale() + JSON.stringify(options);
  if (!formats.has(key)) formats.set(key, new Intl.DateTimeFormat(locale(), options));
  return formats.get(key);
}

const minus = (text) => text.replace("-", "−");
const RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹";

// A whole number with its thousands grouped.
export const count = (value) => (Number.isFinite(value) ? minus(format({ maximumFractionDigits: 0 }).format(value)) : "–");

// A measured number: four significant digits at most, small ones with a power of ten.
export function figure(value, digits = 3) {
  if (typeof value === "string") return value.replace("inf", "∞").replace("-", "−");
  if (value === null || value === undefined) return "–";
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "nan" : value > 0 ? "∞" : "−∞";
  const size = Math.abs(value);
  if (size !== 0 && (size < 5e-4 || size >= 1e7)) return power(value, digits);
  const decimals = size === 0 ? 0 : Math.max(0, Math.min(6, digits - Math.max(0, Math.ceil(Math.log10(size)))));
  return minus(format({ minimumFractionDigits: Number.isInteger(value) ? 0 : decimals, maximumFractionDigits: decimals }).format(value));
}

function power(value, digits) {
  const [head, tail] = value.toExponential(Math.max(0, digits - 2)).split("e");
  const raised = String(Math.abs(Number(tail))).replace(/\d/g, (digit) => RAISED[digit]);
  const factor = minus(format({ maximumFractionDigits: digits }).format(Number(head)));
  return `${factor === "1" ? "" : `${factor}·`}10${Number(tail) < 0 ? "⁻" : ""}${raised}`;
}

// A setting: as it was given, but for its thousands.
export function exact(value) {
  const size = Math.abs(value);
  if (!Number.isFinite(value) || (size !== 0 && (size < 1e-4 || size >= 1e7))) return figure(value, 4);
  return minus(format({ maximumSignificantDigits: 8 }).format(value));
}

export const percent = (share, decimals = 2) =>
  minus(format({ minimumFractionDigits: decimals, maximumFractionDigits: decimals }).format(share * 100));

// A label of an axis, as short as it can be.
export function tick(value) {
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) return power(value, 2);
  return minus(format({ maximumSignificantDigits: 4 }).format(value));
}

// Seconds as [text, unit]: 3:28 min, 1:02:09 h, 41 s.
export function duration(seconds) {
  if (!Number.isFinite(seconds) || seconds < 0) return ["–", ""];
  const whole = Math.round(seconds);
  const two = (n) => String(n).padStart(2, "0");
  if (whole < 60) return [String(whole), "s"];
  if (whole < 3600) return [`${Math.floor(whole / 60)}:${two(whole % 60)}`, "min"];
  if (whole < 86400) return [`${Math.floor(whole / 3600)}:${two(Math.floor(whole / 60) % 60)}:${two(whole % 60)}`, "h"];
  return [format({ maximumFractionDigits: 1 }).format(whole / 86400), t("days")];
}

export const spoken = (seconds) => duration(seconds).join(" ").trim();

// A time in seconds since 1970 as a time of day, to the minute or, of steps below one, to the second; 0: with its date, as midnight is in steps of hours.
export function clockTime(seconds, step) {
  const date = new Date(seconds * 1000), midnight = date.getHours() === 0 && date.getMinutes() === 0 && date.getSeconds() === 0;
  if (step >= 86400 || (step && midnight)) return timeFormat({ day: "numeric", month: "short" }).format(date);
  const exact = step < 60 ? { second: "2-digit" } : {}, dated = step ? {} : { day: "numeric", month: "short" };
  return timeFormat({ ...dated, hour: "2-digit", minute: "2-digit", ...exact, hourCycle: "h23" }).format(date);
}

export const sameDay = (one, other) => new Date(one * 1000).toDateString() === new Date(other * 1000).toDateString();

// What a person typed as a number: a comma is a point where nothing else can be meant.
export function parsed(text) {
  const plain = text.trim().replace("−", "-").replace(/^(-?\d*),(\d+)$/, "$1.$2");
  return plain === "" || !Number.isFinite(Number(plain)) ? null : Number(plain);
}

// A value as it is typed: never rounded.
export const typed = (value) => (typeof value === "number" ? String(value) : value === null || value === undefined ? "" : String(value));

export const levels = (address) => address.split(".");
export const tail = (address, count = 1) => levels(address).slice(-count).join(".");

const OWNED = ["every", "when", "frozen", "rate", "decay"]; // names that are ambiguous without their owner
const OWNERLESS = ["optimiser", "trainer"];

// What the last level of an address is called within a sentence: "learning rate", "Lernrate".
export function named(address) {
  const [last, before] = levels(address).reverse();
  const name = t.has(`name.${last}`) ? t(`name.${last}`) : last.replaceAll("_", " ");
  const owner = before && !OWNERLESS.includes(before) && OWNED.includes(last) ? before.replace(/^\d+-/, "").replaceAll("_", " ") : "";
  return !owner ? name : last === "rate" ? owner : `${owner}: ${name}`;
}

export const title = (address) => named(address).replace(/^./, (first) => first.toUpperCase());
