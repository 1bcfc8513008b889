// Canvases are painted a few at a time: what does not fit into a frame's share waits for the next one.
const SHARE = 8; // milliseconds of a frame

const due = new Map();
let asked = 0;

export function paintSoon(canvas, paint) {
  due.set(canvas, paint);
  asked ||= requestAnimationFrame(run);
}

function run() {
  const begun = performance.now();
  asked = 0;
  for (const [canvas, paint] of due) {
    due.delete(canvas);
    if (canvas.isConnected) paint(canvas);
    if (performance.now() - begun > SHARE) break;
  }
  if (due.size) asked = requestAnimationFrame(run);
}
