// Where the boxes and arrows of a network are drawn: ranks from the inputs to the costs, by dagre. Pure.
import { Graph, layout } from "../vendor/dagre.js";

const MARGIN = 16, LABEL = 18; // pixels around the drawing, and above a frame for its name
const APART = 28, RANKS = 32; // pixels between boxes of a rank, and between ranks
const PADDING = 10; // pixels between a frame and its boxes

// `sizeOf(node)`: [width, height]; `down`: whether arrows go down, not to the right. The result has boxes by their upper left corners.
export function place({ nodes, edges, frames }, sizeOf, down) {
  const graph = new Graph({ compound: true });
  graph.setGraph({ rankdir: down ? "TB" : "LR", nodesep: APART, ranksep: RANKS, marginx: MARGIN, marginy: MARGIN + LABEL });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const node of nodes) {
    const [width, height] = sizeOf(node);
    graph.setNode(node.id, { width, height });
  }
  const there = new Set(nodes.map((node) => node.id)), framed = frames.filter((frame) => frame.names.every((name) => there.has(name)));
  for (const frame of framed) {
    graph.setNode(frame.id, {});
    for (const name of frame.names) graph.setParent(name, frame.id);
  }
  for (const { from, to } of edges) graph.setEdge(from, to);
  layout(graph);
  const boxes = nodes.map((node) => ({ ...node, ...corner(graph.node(node.id)) }));
  return {
    boxes, down, arrows: edges.map((edge) => ({ ...edge, points: graph.edge(edge.from, edge.to).points.map(({ x, y }) => [x, y]) })),
    frames: framed.map((frame) => ({ ...frame, ...around(boxes.filter((box) => frame.names.includes(box.id))) })),
    width: graph.graph().width, height: graph.graph().height,
  };
}

const corner = ({ x, y, width, height }) => ({ x: x - width / 2, y: y - height / 2, width, height });

function around(boxes) {
  const x = Math.min(...boxes.map((one) => one.x)) - PADDING, y = Math.min(...boxes.map((one) => one.y)) - PADDING;
  return { x, y, width: Math.max(...boxes.map((one) => one.x + one.width)) + PADDING - x, height: Math.max(...boxes.map((one) => one.y + one.height)) + PADDING - y };
}

const half = ([x1, y1], [x2, y2]) => [(x1 + x2) / 2, (y1 + y2) / 2];
const text = ([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`;

// An arrow as the path of a curve through its points.
export function curved(points) {
  if (points.length < 3) return `M${text(points[0])}L${text(points.at(-1))}`;
  const inner = points.slice(1, -1), bends = inner.map((point, i) => `Q${text(point)} ${text(i === inner.length - 1 ? points.at(-1) : half(point, inner[i + 1]))}`);
  return `M${text(points[0])}${bends.join("")}`;
}

const HEAD = 7; // pixels

// The head of an arrow, in the direction in which it ends.
export function head(points) {
  const [[x1, y1], [x2, y2]] = points.slice(-2), long = Math.hypot(x2 - x1, y2 - y1) || 1, [dx, dy] = [((x2 - x1) / long) * HEAD, ((y2 - y1) / long) * HEAD];
  return `M${text([x2, y2])}L${text([x2 - dx - dy / 2, y2 - dy + dx / 2])}L${text([x2 - dx + dy / 2, y2 - dy - dx / 2])}Z`;
}

// A line between two boxes that share parameters, bent beside the arrows.
export function tied(one, other) {
  const [a, b] = [one, other].map((box) => [box.x + box.width / 2, box.y + box.height / 2]);
  const across = Math.abs(b[1] - a[1]) > Math.abs(b[0] - a[0]), sign = across ? Math.sign(b[1] - a[1]) : Math.sign(b[0] - a[0]);
  const from = across ? [a[0], a[1] + (sign * one.height) / 2] : [a[0] + (sign * one.width) / 2, a[1]];
  const to = across ? [b[0], b[1] - (sign * other.height) / 2] : [b[0] - (sign * other.width) / 2, b[1]];
  const middle = half(from, to), bend = across ? [[from[0], middle[1]], [to[0], middle[1]]] : [[middle[0], from[1]], [middle[0], to[1]]];
  return `M${text(from)}C${text(bend[0])} ${text(bend[1])} ${text(to)}`;
}
