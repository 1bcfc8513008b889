// The signs of the page, 16 by 16, drawn in the colour of the text.
import { html } from "../lib.js";

const line = (d, width = 1.7) => html`<path d=${d} fill="none" stroke="currentColor" stroke-width=${width} />`;
const solid = (d) => html`<path d=${d} />`;
const ring = (r, dashes) => html`<circle cx="8" cy="8" r=${r} fill="none" stroke="currentColor" stroke-width="1.6" stroke-dasharray=${dashes} />`;

const SIGNS = {
  pause: () => solid("M4 3h3v10H4zM9 3h3v10H9z"),
  play: () => solid("M4.5 2.7v10.6L13 8z"),
  step: () => solid("M3 3.5v9L9 8zM10.5 3.5h2v9h-2z"),
  epoch: () => solid("M1.5 3.5v9L6.5 8zM7 3.5v9L12 8zM12.5 3.5h2v9h-2z"),
  rewind: () => [line("M3.2 6.2A5.2 5.2 0 1 1 2.8 9", 1.8), solid("M1.6 2.6l1 4.4 4.3-1.2z")],
  save: () => [line("M8 1.8L14.2 8 8 14.2 1.8 8z", 1.8), solid("M8 5.2L10.8 8 8 10.8 5.2 8z")],
  stop: () => solid("M3.5 3.5h9v9h-9z"),
  theme: () => [ring(5.6), solid("M8 2.4a5.6 5.6 0 0 1 0 11.2z")],
  sun: () => [html`<circle cx="8" cy="8" r="3.2" />`, line("M8 1v2M8 13v2M1 8h2M13 8h2M3 3l1.4 1.4M11.6 11.6L13 13M13 3l-1.4 1.4M4.4 11.6L3 13", 1.5)],
  moon: () => line("M13 9.6A5.6 5.6 0 0 1 6.4 3a5.6 5.6 0 1 0 6.6 6.6z", 1.6),
  keys: () => [html`<rect x="1.3" y="3.8" width="13.4" height="8.4" rx="1.6" fill="none" stroke="currentColor" stroke-width="1.4" />`,
    solid("M4 6.2h1.4v1.4H4zM7.3 6.2h1.4v1.4H7.3zM10.6 6.2H12v1.4h-1.4zM5 9h6v1.3H5z")],
  layout: () => [html`<rect x="1.8" y="2.3" width="12.4" height="11.4" rx="1.4" fill="none" stroke="currentColor" stroke-width="1.4" />`, line("M2 6h12M6.5 6v7.5", 1.4)],
  check: () => line("M2.8 8.4l3.4 3.4 7-7.4", 2),
  wait: () => [ring(5.6, "3 2.2"), line("M8 4.8V8l2.2 1.6", 1.5)],
  no: () => line("M3.6 3.6l8.8 8.8M12.4 3.6l-8.8 8.8", 2),
  dot: () => html`<circle cx="8" cy="8" r="2.4" />`,
  down: () => line("M4 6.2L8 10.2l4-4"),
  more: () => [3, 8, 13].map((x) => html`<circle cx=${x} cy="8" r="1.4" />`),
  warn: () => [line("M8 1.8l6.6 12H1.4z", 1.6), solid("M7.2 6h1.6v4H7.2zM7.2 11h1.6v1.5H7.2z")],
  flag: () => [line("M4 1.5V15", 1.6), solid("M4.6 2l7 3-7 3z")],
  left: () => line("M10 3.4L5.4 8l4.6 4.6", 1.7),
  right: () => line("M6 3.4L10.6 8 6 12.6", 1.7),
  find: () => [html`<circle cx="7" cy="7" r="4.4" fill="none" stroke="currentColor" stroke-width="1.7" />`, line("M10.4 10.4L14 14", 1.8)],
  link: () => [line("M6.6 9.4l2.8-2.8", 1.6), line("M7.4 4.6l1.8-1.8a2.9 2.9 0 0 1 4.1 4.1l-1.8 1.8M8.6 11.4l-1.8 1.8a2.9 2.9 0 0 1-4.1-4.1l1.8-1.8", 1.6)],
  star: () => html`<path d="M8 1.8l1.9 4 4.4.6-3.2 3 .8 4.4L8 11.7l-3.9 2.1.8-4.4-3.2-3 4.4-.6z" fill="var(--star, none)" stroke="currentColor" stroke-width="1.3" />`,
  plus: () => line("M8 3v10M3 8h10", 1.7),
  minus: () => line("M3 8h10", 1.7),
};

export const Icon = ({ name, class: more = "" }) => html`<svg class=${`i ${more}`} viewBox="0 0 16 16" aria-hidden="true">${SIGNS[name]()}</svg>`;
