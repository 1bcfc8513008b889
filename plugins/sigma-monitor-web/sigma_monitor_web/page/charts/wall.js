// The clock on the wall: from the periods of training, when a second of a branch was, and when the run paused. Pure.
const LEAST = 1; // seconds of a pause

// The periods of each branch that last: what a resume repeats is no longer there.
function byBranch(periods) {
  const found = new Map();
  for (const period of periods) {
    const own = (found.get(period.branch) ?? []).filter((one) => one.second < period.second);
    found.set(period.branch, [...own, period]);
  }
  return found;
}

// The end of a period on the wall: later ones of its branch begin where its training ended, with or without a row that says so.
function endOf(period, next) {
  const same = next.branch === period.branch && next.second > period.second ? period.time + next.second - period.second : 0;
  return Math.min(next.time, Math.max(period.time + period.seconds, same));
}

function pauses(periods, origin) {
  const between = periods.slice(1).map((next, i) => [endOf(periods[i], next) - origin, next.time - origin]);
  return between.filter(([from, to]) => to - from >= LEAST);
}

// `null` for a run without times. Its places are seconds since it began; `guessed`: until where they are guessed, as no time is known.
export function makeWall(periods) {
  if (!periods?.length) return null;
  const branches = byBranch(periods), [first] = periods, origin = first.time - first.second;
  const at = (branch, second) => {
    const own = branches.get(branch) ?? [first], next = own.findIndex((one) => one.second > second), period = own[next < 0 ? own.length - 1 : Math.max(0, next - 1)];
    const place = period.time + second - period.second;
    return (next > 0 ? Math.min(place, own[next].time) : place) - origin;
  };
  // The places of the points of a branch; they never go back.
  const places = (branch, seconds) => {
    const found = new Float64Array(seconds.length);
    for (let i = 0; i < seconds.length; i++) found[i] = Math.max(at(branch, seconds[i]), i ? found[i - 1] : -Infinity);
    return found;
  };
  // The seconds of training, of any branch, in a part of the axis.
  const seconds = ([low, high]) => {
    const parts = periods.flatMap((one, i) => {
      const from = one.time - origin, to = i + 1 < periods.length ? endOf(one, periods[i + 1]) - origin : Infinity;
      return to < low || from > high ? [] : [one.second + Math.max(0, low - from), one.second + Math.min(high, to) - from];
    });
    return parts.length ? [Math.min(...parts), Math.max(...parts)] : [low, high];
  };
  return { key: JSON.stringify(periods), origin, at, places, seconds, pauses: pauses(periods, origin), guessed: first.second > LEAST ? first.second : 0 };
}
