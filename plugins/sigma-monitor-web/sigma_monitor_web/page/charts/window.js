// The rows of a long list that can be seen: lists of hundreds of series have some dozen elements.
import { html, useState } from "../lib.js";

const BEYOND = 6; // rows above and below what is seen

// The rows of a box of `room` pixels, `height` pixels each: the first, the one after the last, and what to do when the box is scrolled.
export function useWindow(count, height, room) {
  const [top, set] = useState(0);
  const from = Math.max(0, Math.min(Math.floor(top / height), count) - BEYOND), to = Math.min(count, Math.ceil((top + room) / height) + BEYOND);
  return { from, to, onScroll: (event) => set(event.currentTarget.scrollTop) };
}

const tall = (pixels) => (element) => element?.style.setProperty("height", `${pixels}px`);

// A list: `row(i)` draws one.
export function List({ count, height = 28, room = 196, label, row }) {
  const { from, to, onScroll } = useWindow(count, height, room);
  return html`<div class="window" ref=${tall(Math.min(room, count * height))} role="group" aria-label=${label} onScroll=${onScroll}>
    <div ref=${tall(from * height)}></div>${Array.from({ length: to - from }, (_, i) => row(from + i))}<div ref=${tall((count - to) * height)}></div></div>`;
}

// Empty rows of a table in place of those that cannot be seen.
export const Gap = ({ rows, height, columns }) => (rows > 0 ? html`<tr aria-hidden="true"><td colspan=${columns} ref=${tall(rows * height)}></td></tr>` : null);
