// The part of the table of runs that is in view, asked of the server: it filters and sorts, however many runs there are.
import { useEffect, useRef, useState } from "../lib.js";
import { request } from "../session.js";
import { useStore } from "../store.js";

const EVERY = 5000; // milliseconds

// Gives the newest answer (null where the server has no runs to show), what is wrong with the query, and a way to ask again.
export function useTable(query, start, count) {
  const [found, set] = useState(undefined), [why, say] = useState("");
  const online = useStore((state) => state.connection === "online" && Boolean(state.hello)), number = useRef(0);
  const plain = !query.where && !query.sort;
  const ask = () => {
    const own = ++number.current, newest = () => own === number.current;
    return request("table", { ...query, start, count }).then(
      (answer) => { if (newest()) { set(answer); say(""); } },
      (error) => { if (newest() && error.kind !== "offline") { if (plain) set(null); else say(error.message); } },
    );
  };
  useEffect(() => {
    if (!online) return undefined;
    const again = setInterval(ask, EVERY);
    ask();
    return () => clearInterval(again);
  }, [online, JSON.stringify(query), start, count]);
  return [found, why, ask];
}
