// The rows that are in view, between two spacers as tall as those that are not.
import { useLayoutEffect, useRef, useState } from "../lib.js";

const SPARE = 15; // rows above and below those in view
const USUAL = 41; // pixels of a row, until one was measured
export const FIRST = 60; // rows

export const tall = (pixels) => (element) => element?.style.setProperty("height", `${Math.round(pixels)}px`);

// Gives refs of the frame that scrolls and of the body of the table, and what is in view.
export function useRows() {
  const frame = useRef(null), body = useRef(null), height = useRef(USUAL), [view, look] = useState({ start: 0, count: FIRST });
  useLayoutEffect(() => {
    const rows = [...(body.current?.querySelectorAll("tr[aria-rowindex]") ?? [])];
    if (rows.length) height.current = Math.max(1, (rows.at(-1).getBoundingClientRect().bottom - rows[0].getBoundingClientRect().top) / rows.length);
  });
  const scroll = () => {
    const { scrollTop, clientHeight } = frame.current, shown = Math.ceil(clientHeight / height.current) + 2 * SPARE;
    const start = Math.max(0, Math.floor(scrollTop / height.current) - SPARE);
    if (Math.abs(start - view.start) >= SPARE / 2 || shown > view.count) look({ start, count: Math.max(FIRST, shown) });
  };
  const top = () => { frame.current?.scrollTo({ top: 0 }); look({ start: 0, count: FIRST }); };
  return { frame, body, view, scroll, top, height: () => height.current };
}
