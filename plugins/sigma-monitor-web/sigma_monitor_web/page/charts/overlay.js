// One measured value of several runs in one chart, by epoch or iteration, labelled at their ends.
import { html, useEffect, useRef, useState } from "../lib.js";
import { Connection } from "../connection.js";
import { socket } from "../entering.js";
import { lines, chain, Curves } from "../series.js";
import { figure, percent, tick } from "../numbers.js";
import { t } from "../words.js";
import { Canvas } from "./lane.js";
import { asPercent, betterHigh } from "./lanes.js";
import { apart, curve, disc, grid, prepare, rule, visible, write } from "./paint.js";
import { palette, SERIES } from "./palette.js";
import { horizontal, linearTicks, roomy, vertical } from "./scale.js";

const TALL = 264, LEFT = 44, GUTTER = 190, BELOW = 28;

// Ask a run of the directory for one curve, through a connection of its own.
function asked(run, name, done) {
  const connection = new Connection(socket(run), { changed: async (state) => {
    if (state !== "online") return;
    try {
      const { trainers } = await connection.request("hello"), address = `${trainers[0]}.${name}`;
      const [answer, branches] = await Promise.all([connection.request("series", { addresses: [address] }), connection.request("branches", { trainer: trainers[0] })]);
      const all = new Curves();
      all.take(answer);
      done(lines(all.get(address), chain(branches, branches.at(-1)?.number ?? 0), "iteration").alive);
    } catch {
      done(null); // it did not measure this
    }
    connection.end();
  } });
  connection.start();
  return () => connection.end();
}

function useLines(runs, name) {
  const [found, set] = useState({});
  const held = useRef({});
  useEffect(() => {
    held.current = {};
    set({});
  }, [name]);
  useEffect(() => {
    const leave = runs.filter((run) => !(run in held.current)).map((run) => {
      held.current[run] = null;
      return asked(run, name, (line) => { held.current[run] = line; set({ ...held.current }); });
    });
    return () => { for (const end of leave) end(); };
  }, [runs.join(" "), name]);
  return found;
}

function extent(shown) {
  let low = Infinity, high = -Infinity, end = 1;
  for (const { line } of shown) {
    end = Math.max(end, line.x[line.length - 1]);
    for (const value of line.value) if (Number.isFinite(value)) [low, high] = [Math.min(low, value), Math.max(high, value)];
  }
  return { low, high, end };
}

function paint(canvas, shown, name) {
  const width = canvas.clientWidth, colours = palette(), pen = prepare(canvas, width, TALL), share = asPercent({ address: name });
  const { low, high, end } = extent(shown), small = width < 560, frame = { left: LEFT, right: width - (small ? 12 : GUTTER) };
  const [from, to] = roomy(low, high, false), sy = vertical({ low: from, high: to, height: TALL, top: 12, bottom: BELOW }), sx = horizontal({ low: 0, high: end, ...frame });
  grid(pen, linearTicks(from, to, 5).map((value) => [value, tick(share ? Number((value * 100).toPrecision(8)) : value)]), sy, frame, colours);
  for (const value of linearTicks(0, end, small ? 3 : 6)) write(pen, tick(value), sx(value), TALL - 8, { colour: colours["ink-3"], family: colours.family, align: "center" });
  for (const { line, colour } of shown) {
    curve(pen, line, line.value, visible(line, 0, end), sx, sy, { colour: colours[colour], width: 2 });
    disc(pen, sx(line.x[line.length - 1]), sy(line.value[line.length - 1]), 4, colours[colour], colours.surface);
  }
  if (small) return;
  const labels = shown.map(({ run, line, colour }) => ({ y: sy(line.value[line.length - 1]), text: `${run.slice(-15)} ${share ? percent(line.value[line.length - 1]) : figure(line.value[line.length - 1])}`, colour }));
  for (const { y, text, colour } of apart(labels, 17, 14, TALL - BELOW)) write(pen, text, frame.right + 12, y + 4, { colour: colours[colour], family: colours.family, size: 13, weight: 600 });
  rule(pen, frame.left, TALL - BELOW, frame.right, TALL - BELOW, colours.line);
}

// `chosen`: names of runs, in the order of their colours.
export function Overlay({ chosen, values }) {
  const [name, choose] = useState(null), first = values.find(betterHigh) ?? values.find((one) => one.startsWith("validation.")) ?? values[0];
  const value = name ?? first, found = useLines(chosen, value);
  const shown = chosen.map((run, i) => ({ run, line: found[run], colour: SERIES[i % SERIES.length] })).filter((one) => one.line?.length);
  const says = shown.map(({ run, line }) => `${run}: ${figure(line.value[line.length - 1])}`).join("; ");
  return html`<section class="card" aria-labelledby="h-over"><div class="card-head"><h2 id="h-over">${t("runs.overlaid")}</h2><span class="note">${t("runs.by")}</span>
      <label class="inline push"><span class="sr">${t("runs.value")}</span><select value=${value} onChange=${(event) => choose(event.target.value)}>${values.map((one) => html`<option key=${one} value=${one}>${one}</option>`)}</select></label></div>
    <div class="overlay">${shown.length ? html`<${Canvas} height=${TALL} label=${says} paint=${(canvas) => paint(canvas, shown, value)} />` : html`<p class="empty">${t(chosen.length ? "loading" : "runs.choose")}</p>`}</div></section>`;
}
