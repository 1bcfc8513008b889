// Repeated blocks and chains of layers, and the graph that remains where some of them are folded. Pure.

const LONGEST = 24; // layers of a block that is found again
const LEAST = 3; // layers of a repetition of single layers
const CHAIN = 4; // layers of a chain that can be folded
const FEW = 16; // layers up to which nothing is folded at first

// Costs have targets, or compare their inputs with each other: then they have a weight, and are a number.
export const isCost = ({ settings, shape }) => "targets" in settings || ("weight" in settings && shape?.length === 0);

const own = (address, name) => address.slice(address.indexOf(`.${name}.`) + name.length + 2);

// What has to be equal for two layers to be of equal blocks: all but names, and how far back their sources are.
function tokens(layers) {
  const place = new Map(layers.map((layer, i) => [layer.name, i]));
  return layers.map(({ name, component, shape, parameters, settings, shared, sources }, i) => JSON.stringify([
    component, shape, Object.entries(parameters).map(([address, sides]) => [own(address, name), sides]),
    Object.entries(settings).filter(([key]) => key !== "name"), Object.keys(shared ?? {}), sources.map((source) => i - place.get(source)),
  ]));
}

function timesAt(all, from, period) {
  let times = 1;
  while (all.slice(from, from + period).every((one, i) => all[from + times * period + i] === one)) times += 1;
  return times;
}

// The blocks that are repeated one after another, from the first layer on, the longest repetition each time.
export function repeats(layers) {
  const all = tokens(layers), found = [];
  for (let from = 0; from < all.length;) {
    let best = { size: 1 };
    for (let period = 1; period <= Math.min(LONGEST, (all.length - from) / 2); period++) {
      const times = timesAt(all, from, period), size = times * period;
      if (times > 1 && size >= LEAST && size > best.size) best = { size, period, times };
    }
    if (best.times) found.push({ id: `repeat-${from}`, kind: "repeat", times: best.times, period: best.period, names: layers.slice(from, from + best.size).map((one) => one.name) });
    from += best.size;
  }
  return found;
}

// Layers that follow each other without a branch, if the network has branches, and none of them is `taken`.
export function chains(layers, taken) {
  const ends = new Map(layers.map((one) => [one.name, []])), found = [];
  for (const { name, sources } of layers) for (const source of sources) ends.get(source)?.push(name);
  const after = (name) => { // the only layer after this one, if this is its only source
    const [next, ...more] = ends.get(name), layer = layers.find((one) => one.name === next);
    return next && !more.length && layer.sources.length === 1 && !taken.has(next) && !isCost(layer) ? next : null;
  };
  const inside = new Set();
  for (const { name } of layers) {
    if (inside.has(name) || taken.has(name) || isCost(layers.find((one) => one.name === name))) continue;
    const names = [name];
    for (let next = after(name); next; next = after(next)) names.push(next);
    for (const one of names) inside.add(one);
    if (names.length >= CHAIN && names.length < layers.filter((one) => !isCost(one)).length) found.push({ id: `chain-${name}`, kind: "chain", names });
  }
  return found;
}

export function groupsOf(layers) {
  const blocks = repeats(layers);
  return [...blocks, ...chains(layers, new Set(blocks.flatMap((one) => one.names)))];
}

// The groups that are folded at first: what is repeated often, in a network of more than a few layers.
export const foldedAtFirst = (layers, groups) => new Set(layers.length > FEW ? groups.filter((one) => one.times > 2).map((one) => one.id) : []);

// The boxes and arrows of a network: layers, folded groups in place of theirs, and optimisers after their costs.
// {nodes: [{id, kind, layers, group}], edges: [{from, to}], frames: [group]}
export function graphOf(layers, optimisers, groups, folded) {
  const home = new Map(), shown = groups.filter((one) => folded.has(one.id));
  for (const group of shown) for (const name of group.names) home.set(name, group.id);
  const boxOf = (name) => home.get(name) ?? name, nodes = new Map();
  for (const layer of layers) {
    const id = boxOf(layer.name), group = shown.find((one) => one.id === id);
    if (!nodes.has(id)) nodes.set(id, { id, kind: group ? "group" : isCost(layer) ? "cost" : "layer", layers: [], group: group ?? null });
    nodes.get(id).layers.push(layer);
  }
  const edges = new Map(), link = (from, to, kind) => { if (from !== to && nodes.has(from)) edges.set(`${from}\n${to}`, { from, to, kind }); };
  for (const { name, sources } of layers) for (const source of sources) link(boxOf(source), boxOf(name), "flow");
  for (const optimiser of optimisers) {
    nodes.set(optimiser.name, { id: optimiser.name, kind: "optimiser", layers: [], group: null, optimiser });
    for (const cost of optimiser.minimises) link(boxOf(cost), optimiser.name, "minimises");
  }
  return { nodes: [...nodes.values()], edges: [...edges.values()], frames: groups.filter((one) => !folded.has(one.id)), shared: sharedOf(layers, boxOf) };
}

// The layer of an address of a parameter: the longest name that it contains.
export function lenderOf(layers, address) {
  return layers.map((one) => one.name).filter((name) => address.includes(`.${name}.`)).sort((a, b) => b.length - a.length)[0] ?? null;
}

// Which boxes share parameters, each pair once: [{from: the owner, to}].
function sharedOf(layers, boxOf) {
  const pairs = new Map();
  for (const { name, shared } of layers) {
    for (const address of Object.values(shared ?? {})) {
      const from = boxOf(lenderOf(layers, address) ?? name), to = boxOf(name);
      if (from !== to) pairs.set(`${from}\n${to}`, { from, to });
    }
  }
  return [...pairs.values()];
}
