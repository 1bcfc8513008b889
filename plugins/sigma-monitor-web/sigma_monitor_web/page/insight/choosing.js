// Choose rows, one by one or from one to another, by pointer and by keys.
import { useRef } from "../lib.js";

// What a list of buttons needs, one for each row: press(event, i) and move(event, i); `place` is the element that holds them.
export function useChoosing(rows, chosen, choose) {
  const place = useRef(null), last = useRef(0);
  const press = (event, i) => {
    const [from, to] = event.shiftKey ? [Math.min(last.current, i), Math.max(last.current, i)] : [i, i], off = chosen.has(rows[i].row), next = new Set(chosen);
    for (let k = from; k <= to; k++) if (off) next.delete(rows[k].row); else next.add(rows[k].row);
    last.current = i;
    choose(next);
  };
  const move = (event, i) => {
    const buttons = [...place.current.querySelectorAll("button")], across = Math.max(1, buttons.findIndex((one) => one.offsetTop > buttons[0].offsetTop));
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: across, ArrowUp: -across }[event.key];
    if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    buttons[i + step]?.focus();
  };
  return { place, press, move };
}
