// What a zoom comes to: parts of the time axis, and bounds of a chart. Pure.

const FINEST = 5000; // the least part of the run, or of the values, that is shown

const along = (log, least = 1) => (log ? [(value) => Math.log(Math.max(value, least)), Math.exp] : [(value) => value, (value) => value]);

// Zoom by a factor around a place, never beyond the whole run: null is the whole.
export function zoomed({ low, high, end, log, least }, place, factor) {
  const [f, back] = along(log, least), scaled = (edge) => back(f(place) + (f(edge) - f(place)) * factor);
  const from = Math.max(0, scaled(low)), to = Math.min(end, scaled(high));
  if (from <= (log ? least : end * 0.001) && to >= end * 0.999) return null;
  return f(to) - f(from) < (f(end) - f(0)) / FINEST ? [low, high] : [from, to];
}

// Move the part that is shown by a share of its width, within the run; the whole stays the whole.
export function moved({ low, high, end, log, least }, share) {
  if (low <= 0 && high >= end) return null;
  const [f, back] = along(log, least), by = (f(high) - f(low)) * share;
  const within = Math.min(Math.max(by, f(0) - f(low)), f(end) - f(high));
  return [Math.max(0, back(f(low) + within)), back(f(high) + within)];
}

// Zoom the scale of a chart by a factor around a value.
export function scaled({ low, high, log }, value, factor) {
  const [f, back] = along(log, Number.MIN_VALUE), edge = (one) => back(f(value) + (f(one) - f(value)) * factor);
  const [from, to] = [edge(low), edge(high)];
  return to > from && Number.isFinite(to - from) && (!log || from > 0) ? [from, to] : [low, high];
}

const LEAST_DRAG = 6, NARROW = 20; // pixels

// The directions in which a drag zooms: none, along the axis, across it, or both.
export function directions(wide, tall) {
  if (Math.max(wide, tall) <= LEAST_DRAG) return { x: false, y: false };
  if (tall < NARROW || tall < wide / 4) return wide > LEAST_DRAG ? { x: true, y: false } : { x: false, y: true };
  return { x: wide >= NARROW && wide >= tall / 4, y: true };
}
