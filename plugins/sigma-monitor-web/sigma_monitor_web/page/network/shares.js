// The shares of layers, groups and optimisers in a training step: estimates of the server, added up. Pure.

const add = (one, other) => (one === null || other === null ? null : one + other);
const bytesOf = ({ sizes }) => Object.values(sizes).reduce((sum, one) => sum + one, 0);

// {time, memory, operations, bytes} by name, shares from 0 to 1; null where nothing is known.
export function sharesOf(work) {
  const operations = work.reduce((sum, one) => add(sum, one.operations), work.length ? 0 : null), bytes = work.reduce((sum, one) => sum + bytesOf(one), 0);
  const of = new Map(work.map((one) => [one.name, { ...one, bytes: bytesOf(one), time: operations ? one.operations / operations : null, memory: bytes ? bytesOf(one) / bytes : null }]));
  return { of, operations, bytes };
}

// The share of several layers.
export function together({ of }, names) {
  const known = names.map((name) => of.get(name)).filter(Boolean);
  if (!known.length) return null;
  const sum = (key) => known.reduce((all, one) => add(all, one[key]), 0);
  return { time: sum("time"), memory: sum("memory"), operations: sum("operations"), bytes: sum("bytes") };
}
