// Fuzzy matching: the letters of what is typed, in their order, in a text. Pure.

const START = 8, ROW = 9; // what a letter is worth at the beginning of a word, and right behind the one before
const LONG = 0.02; // what each letter of a text costs: of two texts that match alike, the shorter one is meant
const OTHER = 0.8; // the share of a text that is not the one that is shown

const folded = (text) => text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();
const starts = (text, at) => at === 0 || !/[\p{L}\p{N}]/u.test(text[at - 1]);

function within(word, text) {
  let at = -1;
  for (const letter of word) {
    at = text.indexOf(letter, at + 1);
    if (at < 0) return false;
  }
  return true;
}

// The best places of the letters of a word in a text: {score, places}, or null if they are not all there in their order. `begins` says
// whether a word of the text begins at a place.
function place(word, text, begins) {
  if (!within(word, text)) return null;
  const came = [];
  let scores = [];
  for (let i = 0; i < word.length; i++) {
    const next = new Float64Array(text.length).fill(-Infinity), from = new Int32Array(text.length);
    let best = i ? -Infinity : 0, where = -1;
    for (let at = i; at < text.length; at++) {
      if (i && at > 1 && scores[at - 2] > best) [best, where] = [scores[at - 2], at - 2];
      if (text[at] !== word[i]) continue;
      const row = i ? scores[at - 1] + ROW : -Infinity;
      next[at] = 1 + (begins(at) ? START : 0) + Math.max(row, best);
      from[at] = row >= best ? at - 1 : where;
    }
    came.push(from);
    scores = next;
  }
  let at = scores.indexOf(scores.reduce((most, one) => Math.max(most, one), -Infinity));
  const score = scores[at], places = [];
  for (let i = word.length - 1; i >= 0; at = came[i][at], i--) places.unshift(at);
  return { score, places };
}

// How well a text fits what was typed, of which each word must be found, the longest first, in letters of its own: {score, places}, or null.
export function fit(query, text) {
  const plain = folded(text), left = plain.split(""), places = [];
  let score = -LONG * text.length;
  for (const word of folded(query).split(/\s+/).filter(Boolean).sort((one, other) => other.length - one.length)) {
    const found = place(word, left.join(""), (at) => starts(plain, at));
    if (!found) return null;
    score += found.score;
    for (const at of found.places) left[at] = " ";
    places.push(...found.places);
  }
  return { score, places: plain.length === text.length ? places.sort((a, b) => a - b) : [] };
}

// The best of an item's texts: the first is the one that is shown, in which places are marked.
function best(query, [shown, ...others]) {
  const own = fit(query, shown), scores = others.map((text) => fit(query, text)).filter(Boolean).map(({ score }) => score * OTHER);
  if (!own && !scores.length) return null;
  return { score: Math.max(own?.score ?? -Infinity, ...scores), places: own?.places ?? [] };
}

// The items that fit best, the best first, at most so many; without a query, the first ones.
export function find(items, query, most) {
  if (!query.trim()) return items.slice(0, most).map((item) => ({ item, places: [] }));
  const found = items.map((item, order) => ({ item, order, ...best(query, item.texts) })).filter(({ score }) => score !== undefined);
  return found.sort((one, other) => other.score - one.score || one.order - other.order).slice(0, most);
}
