// Which media have room on the axis, and where: pure.
const GAP = 8; // pixels between two
export const EDGE = 4; // pixels from the edges of the plot

const clamp = (x, low, high) => Math.min(Math.max(x, low), Math.max(low, high));

// The places of entries with room for thumbnails of a width side by side, in their order: the newest first, then those before it as far as
// there is room, and last those of branches that were left. One that is `looked` at comes before all. `x` is the moment of an entry in pixels, `left` where its thumbnail begins.
export function arrange(entries, { sx, axis, frame }, width, looked = null) {
  const placed = [], all = entries.map((entry) => ({ entry, x: sx(axis.place(entry.iteration, entry.seconds, entry)) })).filter(({ x }) => x >= frame.left - 1 && x <= frame.right + 1);
  const free = (left) => placed.every((one) => left + width + GAP <= one.left || one.left + width + GAP <= left);
  const older = (a, b) => (b.entry === looked) - (a.entry === looked) || b.x - a.x;
  for (const alive of [true, false]) {
    for (const one of all.filter(({ entry }) => entry.is_left !== alive).sort(older)) {
      const left = clamp(one.x - width / 2, EDGE, frame.width - width - EDGE);
      if (free(left)) placed.push({ ...one, left });
    }
  }
  return { all, placed: placed.sort((a, b) => a.left - b.left) };
}

// What was newest at a moment of the present line; null if nothing was there yet.
export function newestAt(entries, iteration) {
  return entries.filter((one) => !one.is_left && one.iteration <= iteration).reduce((best, one) => (best && best.iteration >= one.iteration ? best : one), null);
}

// The same moment of the same name and branch.
export const same = (one, other) => one.key === other.key && one.iteration === other.iteration && one.branch === other.branch;
