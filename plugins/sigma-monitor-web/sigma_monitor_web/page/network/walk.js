// Moving through a drawing by keys, and what of it is seen: along arrows, across them, zoomed and moved. Pure.

const CLOSEST = 3, FURTHEST = 0.15; // factors of zoom
const READABLE = 0.62; // the factor below which a drawing is rather cut than made smaller
const LOWEST = 104, TALLEST = { true: 1200, false: 480 }; // pixels of the window onto a drawing; where arrows go down, the page scrolls along it

const centre = (box) => [box.x + box.width / 2, box.y + box.height / 2];
const clamp = (value, low, high) => Math.min(high, Math.max(low, value));

// The box that an arrow key leads to, or null: along the arrows, the straightest one, or to the neighbour across them.
export function stepped({ boxes, arrows, down }, id, key) {
  const here = boxes.find((box) => box.id === id);
  if (!here) return boxes[0]?.id ?? null;
  const [along, across] = down ? [1, 0] : [0, 1], way = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 1], ArrowUp: [1, -1] }[key];
  const at = centre(here), near = (axis) => (one, other) => Math.abs(centre(one)[axis] - at[axis]) - Math.abs(centre(other)[axis] - at[axis]);
  if (way[0] === along) {
    const ends = arrows.filter((one) => (way[1] > 0 ? one.from : one.to) === id).map((one) => (way[1] > 0 ? one.to : one.from));
    return boxes.filter((box) => ends.includes(box.id)).sort(near(across))[0]?.id ?? null;
  }
  const overlaps = (box) => Math.abs(centre(box)[along] - at[along]) < (down ? box.height + here.height : box.width + here.width) / 2;
  return boxes.filter((box) => (centre(box)[across] - at[across]) * way[1] > 1 && overlaps(box)).sort(near(across))[0]?.id ?? null;
}

// The whole drawing in a window of a width, as far as it stays readable: {x, y, k, width, height}.
export function fitted(size, width) {
  const k = clamp(width / size.width, READABLE, 1), height = clamp(size.height * k, LOWEST, TALLEST[size.down]);
  const free = (length, room) => (length < room ? (length - room) / 2 : 0);
  return { k, width, height, x: free(size.width, width / k), y: free(size.height, height / k) };
}

// Zoom by a factor around a place of the window, in pixels.
export function scaledAt(view, factor, px, py) {
  const k = clamp(view.k * factor, FURTHEST, CLOSEST);
  return { ...view, k, x: view.x + px / view.k - px / k, y: view.y + py / view.k - py / k };
}

// Move by pixels, never so far that nothing is seen.
export function movedBy(view, size, dx, dy) {
  const wide = view.width / view.k, tall = view.height / view.k;
  return { ...view, x: clamp(view.x + dx / view.k, -wide / 2, size.width - wide / 2), y: clamp(view.y + dy / view.k, -tall / 2, size.height - tall / 2) };
}

const EDGE = 24; // pixels beside a box that is brought into view

// Move so far that a box is seen.
export function showing(view, box) {
  const wide = view.width / view.k, tall = view.height / view.k;
  const inside = (from, length, start, room) => (start < from + EDGE || length > room - 2 * EDGE ? start - EDGE : start + length > from + room - EDGE ? start + length + EDGE - room : from);
  return { ...view, x: inside(view.x, box.width, box.x, wide), y: inside(view.y, box.height, box.y, tall) };
}
