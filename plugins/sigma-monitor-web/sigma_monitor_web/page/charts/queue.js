// Canvases are painted a few a frame, and only while they can be seen: many charts never share one long task.
const MOST = 2; // canvases a frame
const SHARE = 6; // milliseconds of a frame
const AHEAD = "200px"; // around what is seen

const known = new Map(); // canvases, with how each was painted last
const due = new Map();
const seen = new WeakSet();
let asked = 0;

const watch = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    if (isIntersecting) seen.add(target);
    else seen.delete(target);
  }
  ask();
}, { rootMargin: AHEAD });

function ask() {
  asked ||= requestAnimationFrame(run);
}

// Watch a canvas from now on, until the returned function is called.
export function watched(canvas) {
  watch.observe(canvas);
  return () => {
    watch.unobserve(canvas);
    due.delete(canvas);
    known.delete(canvas);
  };
}

export function paintSoon(canvas, paint) {
  known.set(canvas, paint);
  due.set(canvas, paint);
  ask();
}

// Paint all canvases at once, those that cannot be seen too: for paper.
export function paintAll() {
  for (const [canvas, paint] of known) paint(canvas);
}

function run() {
  const begun = performance.now();
  let painted = 0, left = false;
  asked = 0;
  for (const [canvas, paint] of due) {
    if (!seen.has(canvas)) continue;
    if (painted >= MOST || performance.now() - begun > SHARE) {
      left = true;
      break;
    }
    due.delete(canvas);
    paint(canvas);
    painted += 1;
  }
  if (left) ask();
}
