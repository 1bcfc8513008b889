// Curves as growing typed arrays, by address and branch, and the queries of charts. Nothing here draws.

const COLUMNS = ["iteration", "epoch", "second", "value", "low", "high"];
const POINTS = [300, 4000]; // of an address that are asked for: at least, and at most
const CROWDED = 3; // times as many points as were asked for: then the whole run is asked for again
const UNITS = 1000; // of smoothing in the length of a curve

// The points of one branch, in the order in which they came.
export class Stretch {
  constructor() {
    this.length = 0;
    this.room = 0;
  }

  reserve(more) {
    const wanted = this.length + more;
    if (wanted <= this.room) return;
    this.room = Math.max(256, wanted, this.room * 2);
    for (const name of COLUMNS) {
      const column = new Float64Array(this.room);
      if (this[name]) column.set(this[name].subarray(0, this.length));
      this[name] = column;
    }
  }

  add(rows) {
    const more = rows.iteration.length;
    this.reserve(more);
    for (let i = 0; i < more; i++) {
      const at = this.length + i;
      const value = number(rows.value[i]);
      this.iteration[at] = rows.iteration[i];
      this.epoch[at] = rows.epoch?.[i] ?? 0;
      this.second[at] = rows.second?.[i] ?? 0;
      this.value[at] = value;
      this.low[at] = number(rows.low?.[i] ?? value);
      this.high[at] = number(rows.high?.[i] ?? value);
    }
    this.length += more;
  }

  part(from, to) {
    return Object.fromEntries(COLUMNS.map((name) => [name, this[name].subarray(from, to)]));
  }

  // The first point after an iteration.
  after(iteration) {
    return upper(this.iteration, this.length, iteration);
  }
}

const number = (value) => (value === null || value === undefined ? NaN : Number(value === "inf" ? Infinity : value === "-inf" ? -Infinity : value));

// The first place in the sorted head of an array whose value is above `wanted`.
export function upper(sorted, length, wanted) {
  let low = 0, high = length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] <= wanted) low = middle + 1;
    else high = middle;
  }
  return low;
}

// A branch with more points in a part of it.
function magnified(stretch, detail) {
  if (!detail?.length) return stretch;
  const made = new Stretch(), first = detail.iteration[0], last = detail.iteration[detail.length - 1];
  made.add(stretch.part(0, upper(stretch.iteration, stretch.length, first - 1)));
  made.add(detail.part(0, detail.length));
  made.add(stretch.part(upper(stretch.iteration, stretch.length, last), stretch.length));
  return made;
}

function byBranch(stretches, branches = new Map()) {
  for (const rows of stretches) {
    if (!rows.iteration.length) continue;
    if (!branches.has(rows.branch)) branches.set(rows.branch, new Stretch());
    branches.get(rows.branch).add(rows);
  }
  return branches;
}

// How many points of an address are asked for: one for each pixel of a chart that is as wide as the window.
export const pixels = () => Math.min(POINTS[1], Math.max(POINTS[0], Math.ceil(innerWidth * devicePixelRatio)));

// All curves that the page has, by address; `next` is the cursor to ask with, `most` how many points were asked for then, `detail`
// has more points of a part.
export class Curves {
  constructor(most = POINTS[1]) {
    this.all = new Map();
    this.most = most;
  }

  clear() {
    this.all.clear();
  }

  get(address) {
    return this.all.get(address) ?? null;
  }

  // Where to go on; curves of too many points, or of fewer than a window shows that has grown, begin again with the whole run.
  cursors(addresses) {
    return Object.fromEntries(addresses.map((address) => [address, this.unfit(address) ? 0 : this.get(address)?.next ?? 0]));
  }

  unfit(address) {
    const curve = this.get(address), points = [...(curve?.branches.values() ?? [])].reduce((sum, { length }) => sum + length, 0);
    return points > CROWDED * this.most || curve?.most < this.most;
  }

  // Add the server's points; return whether any is new.
  take(answer) {
    let news = false;
    for (const [address, { next, whole, stretches }] of Object.entries(answer ?? {})) {
      const curve = this.all.get(address) ?? { version: 0, branches: new Map(), detail: new Map() };
      this.all.set(address, curve);
      curve.next = next;
      if (whole) curve.most = this.most;
      if (!stretches.length) continue;
      curve.branches = byBranch(stretches, whole ? new Map() : curve.branches);
      curve.version += 1;
      news = true;
    }
    return news;
  }

  // Take more points of a part of the run, or none, in place of those of the part before.
  magnify(answer) {
    for (const [address, curve] of this.all) {
      const detail = byBranch(answer[address]?.stretches ?? []);
      if (!detail.size && !curve.detail.size) continue;
      curve.detail = detail;
      curve.version += 1;
    }
  }
}

export const curves = new Curves(pixels());

// The address that a row of the journal is about, from the root; rows hold it from their trainer on.
export const whole = (row) => (row.pattern?.startsWith(`${row.trainer}.`) ? row.pattern : `${row.trainer}.${row.pattern ?? ""}`);

const begun = new Map(); // values of settings before anything was set, as the page found them

export const remember = (address, value) => { if (!begun.has(address)) begun.set(address, value); };

// The value that an address had first, where its curve is known, or where the page was there.
export function firstValue(address) {
  const branches = curves.get(address)?.branches;
  const first = branches?.size ? branches.get(Math.min(...branches.keys())) : null;
  return first?.length ? first.value[0] : begun.get(address);
}

// The branches from the first to the present one: [{number, from, to}], `to` where the next one left it.
export function chain(branches, present) {
  const known = new Map(branches.map((branch) => [branch.number, branch]));
  const found = [];
  let to = Infinity;
  for (let at = known.get(present); at && !found.some((one) => one.number === at.number); at = known.get(at.parent)) {
    found.unshift({ number: at.number, from: at.start ?? 0, to });
    to = at.start ?? 0;
  }
  return found.length ? found : [{ number: present ?? 0, from: 0, to: Infinity }];
}

// Whether a moment of a branch is on the current line.
export const counts = (alive, branch, iteration) => alive.some((one) => one.number === branch && iteration <= one.to);

// `places` of a branch and its seconds are those of the axis that no column has.
function slice(stretch, branch, from, to, axis, places) {
  const columns = { length: to - from };
  for (const name of COLUMNS) columns[name] = stretch[name].subarray(from, to);
  columns.x = places ? places(branch, columns.second) : columns[axis];
  return columns;
}

function joined(parts, axis, places) {
  if (parts.length === 1) return parts[0];
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  const whole = { length };
  for (const name of places ? [...COLUMNS, "x"] : COLUMNS) {
    whole[name] = new Float64Array(length);
    let at = 0;
    for (const part of parts) {
      whole[name].set(part[name], at);
      at += part.length;
    }
  }
  whole.x ??= whole[axis];
  return whole;
}

// One curve as the line that counts, and the futures that were left, each with the point at which it leaves.
export function lines(curve, alive, axis, places = null) {
  const kept = [], left = [];
  for (const [number_, whole] of [...curve.branches].sort((a, b) => a[0] - b[0])) {
    const stretch = magnified(whole, curve.detail?.get(number_));
    const link = alive.find((one) => one.number === number_);
    const end = link ? stretch.after(link.to) : 0;
    if (link && end) kept.push(slice(stretch, number_, 0, end, axis, places));
    if (end < stretch.length) left.push({ branch: number_, ...slice(stretch, number_, Math.max(0, end - 1), stretch.length, axis, places) });
  }
  return { alive: kept.length ? joined(kept, axis, places) : null, left };
}

// A centred exponential mean that goes by the distance of the points, and over logarithms where no value is below 0: it neither runs
// late behind an edit nor follows single peaks, and looks alike however dense the points are.
export function smoothed(values, factor, places) {
  const length = values.length, out = new Float64Array(length);
  if (!factor || length < 3) return Float64Array.from(values);
  const unit = (places[length - 1] - places[0]) / Math.min(length - 1, UNITS) || 1, rate = Math.log(factor) / unit;
  const least = leastPositive(values), inner = least ? values.map((value) => Math.log(Math.max(value, least))) : values;
  pass(inner, places, out, rate, 1);
  pass(inner, places, out, rate, -1);
  for (let i = 0; i < length; i++) out[i] = least ? Math.exp(out[i] / 2) : out[i] / 2;
  return out;
}

// The least value above 0, or 0 where one is below 0 or all are 0.
function leastPositive(values) {
  let least = Infinity;
  for (const value of values) {
    if (value < 0) return 0;
    if (value > 0 && value < least) least = value;
  }
  return Number.isFinite(least) ? least : 0;
}

function pass(values, places, out, rate, way) {
  const length = values.length;
  let mean = 0, weight = 0, last = NaN, before = NaN, faded = 0; // points at equal distances share one weight
  for (let n = 0, i = way > 0 ? 0 : length - 1; n < length; n++, i += way) {
    if (Number.isFinite(values[i])) {
      const distance = Math.abs(places[i] - last);
      if (distance !== before) [before, faded] = [distance, Math.exp(distance * rate)];
      const kept = last === last ? faded : 0;
      mean = mean * kept + values[i] * (1 - kept);
      weight = weight * kept + (1 - kept);
      last = places[i];
    }
    out[i] += weight ? mean / weight : NaN;
  }
}

// The value of a line at a place on the axis: the newest at or before it.
export function at(line, values, place) {
  if (!line || !line.length) return null;
  const index = upper(line.x, line.length, place) - 1;
  return index < 0 ? null : { index, x: line.x[index], iteration: line.iteration[index], value: values[index] };
}

// y at x between the points of a line, for marks that know their iteration alone.
export function between(xs, ys, length, x) {
  const right = upper(xs, length, x);
  if (right === 0) return length ? ys[0] : 0;
  if (right === length) return ys[length - 1];
  const share = (x - xs[right - 1]) / (xs[right] - xs[right - 1] || 1);
  return ys[right - 1] + share * (ys[right] - ys[right - 1]);
}
