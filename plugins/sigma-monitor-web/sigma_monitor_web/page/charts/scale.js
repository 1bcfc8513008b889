// Scales and ticks. Pure.

const NICE = [1, 2, 5, 10];

export function niceStep(span, count) {
  const rough = span / Math.max(1, count), power = 10 ** Math.floor(Math.log10(rough));
  return NICE.find((factor) => factor * power >= rough) * power;
}

export function linearTicks(low, high, count) {
  if (!(high > low)) return [low];
  const step = niceStep(high - low, count), found = [];
  for (let n = Math.ceil(low / step - 1e-9); n * step <= high + step * 1e-9; n++) found.push(Number((n * step).toPrecision(12)));
  return found;
}

// 1, 2, 5 in every decade, or decades alone where there are many.
export function logTicks(low, high, count) {
  const found = [], first = Math.floor(Math.log10(low)), last = Math.ceil(Math.log10(high));
  const decades = last - first;
  const every = Math.max(1, Math.ceil(decades / count));
  const factors = decades * 3 <= count * 1.7 ? [1, 2, 5] : decades * 2 <= count * 1.5 ? [1, 3] : [1];
  for (let power = first; power <= last; power += every) {
    for (const factor of factors) {
      const value = Number((factor * 10 ** power).toPrecision(12));
      if (value >= low * 0.999 && value <= high * 1.001) found.push(value);
    }
  }
  return found.length > 2 ? found : linearTicks(low, high, count).filter((value) => value > 0);
}

// y of a value in a plot, and with `invert` the value of a y; `log` needs bounds above 0.
export function vertical({ low, high, height, top = 16, bottom = 16, log = false }) {
  const f = log ? Math.log : (value) => value;
  const from = f(low), span = f(high) - from || 1, room = height - top - bottom;
  const clamp = (value) => Math.min(high, Math.max(low, value));
  const sy = (value) => height - bottom - ((f(clamp(value)) - from) / span) * room;
  sy.invert = (y) => {
    const at = from + ((height - bottom - y) / room) * span;
    return log ? Math.exp(at) : at;
  };
  return sy;
}

// x of a place on the axis, and with `invert` the place of an x; `log` draws what is below `least` at `least`.
export function horizontal({ low, high, left, right, log = false, least = 1 }) {
  const f = log ? (place) => Math.log(Math.max(place, least)) : (place) => place;
  const from = f(low), span = f(high) - from || 1;
  const sx = (place) => left + ((f(place) - from) / span) * (right - left);
  sx.invert = (x) => {
    const at = from + ((x - left) / (right - left)) * span;
    return log ? Math.exp(at) : at;
  };
  return sx;
}

// Bounds with some air, from those of the values.
export function roomy(low, high, log) {
  if (!(high >= low)) return log ? [0.01, 1] : [0, 1];
  if (log) {
    const air = Math.max(Math.pow(high / low, 0.06), 1.05);
    return [low / air, high * air];
  }
  const air = (high - low) * 0.07 || Math.abs(high) * 0.5 || 0.5;
  return [low - air, high + air];
}
