// What a run takes of its machine, and how its time divides: small charts on the time axis of the others, in a section of their own. Pure.
import { t } from "../words.js";

export const SYSTEM = ":system"; // the section, which a person's sections are told apart from
const TALL = 76, PHASES = 144; // pixels; there is a label for each phase

// The charts in their order: the readings of each, below `system.` of a trainer.
const CHARTS = ["speed", "phases", "processor", "memory", "gpu.busy", "gpu.memory", "threads", "disk"];
const patternOf = (name) => (name.startsWith("gpu.") ? `system.gpu*.${name.slice(4)}` : `system.${name}.*`);

// The lanes of the readings that there are; `own` has what a person has changed, by trainer and lane.
export function systemLanes(entries, trainer, own) {
  const head = `${trainer}.system.`, names = new Set(entries.filter(({ address }) => address.startsWith(head)).map(({ address }) => {
    const [first, last] = address.slice(head.length).split(".");
    return first.startsWith("gpu") ? `gpu.${last}` : first;
  }));
  return CHARTS.filter((name) => names.has(name)).map((name) => ({
    id: `system.${name}`, patterns: [`${trainer}.${patternOf(name)}`], title: t(`system.${name}`), section: SYSTEM, log: false, tall: name === "phases" ? PHASES : TALL, ...own[`${trainer}.system.${name}`],
  }));
}

// Whether a lane is one of these.
export const isSystem = (id) => id.startsWith("system.");
