// A pen with those methods of a canvas that charts are painted with, which writes SVG.
import { measure } from "./paint.js";

const ANCHORS = { left: "start", center: "middle", right: "end" };
const STATE = { strokeStyle: "#000", fillStyle: "#000", lineWidth: 1, globalAlpha: 1, lineJoin: "miter", lineCap: "butt", font: "12px sans-serif", textAlign: "left", dash: [], clipped: "" };

const short = (value) => String(Math.round(value * 100) / 100);
const escaped = (text) => String(text).replace(/[&<>"]/g, (sign) => `&#${sign.codePointAt(0)};`);

export class SvgPen {
  constructor(width, height) {
    Object.assign(this, STATE, { width, height, parts: [], path: "", states: [], clips: [], moved: [0, 0] });
  }

  save() {
    this.states.push(Object.fromEntries([...Object.keys(STATE), "moved"].map((name) => [name, this[name]])));
  }

  restore() {
    Object.assign(this, this.states.pop());
  }

  translate(x, y) {
    this.moved = [this.moved[0] + x, this.moved[1] + y];
  }

  setLineDash(dash) {
    this.dash = dash;
  }

  at(x, y) {
    return `${short(x + this.moved[0])} ${short(y + this.moved[1])}`;
  }

  beginPath() {
    this.path = "";
  }

  moveTo(x, y) {
    this.path += `M${this.at(x, y)}`;
  }

  lineTo(x, y) {
    this.path += `${this.path ? "L" : "M"}${this.at(x, y)}`;
  }

  bezierCurveTo(a, b, c, d, x, y) {
    this.path += `C${this.at(a, b)} ${this.at(c, d)} ${this.at(x, y)}`;
  }

  rect(x, y, width, height) {
    this.path += `M${this.at(x, y)}h${short(width)}v${short(height)}h${short(-width)}z`;
  }

  // Whole circles are the only arcs of charts.
  arc(x, y, radius) {
    const r = short(radius);
    this.path += `M${this.at(x - radius, y)}a${r} ${r} 0 1 0 ${short(radius * 2)} 0a${r} ${r} 0 1 0 ${short(-radius * 2)} 0z`;
  }

  closePath() {
    this.path += "z";
  }

  clip() {
    this.clips.push(this.path);
    this.clipped = ` clip-path="url(#clip-${this.clips.length})"`;
  }

  add(name, attributes, content = "") {
    const alpha = this.globalAlpha < 1 ? ` opacity="${this.globalAlpha}"` : "";
    this.parts.push(`<${name} ${attributes}${alpha}${this.clipped}${content ? `>${content}</${name}>` : "/>"}`);
  }

  outline() {
    return `fill="none" stroke="${escaped(this.strokeStyle)}" stroke-width="${this.lineWidth}" stroke-linejoin="${this.lineJoin}" stroke-linecap="${this.lineCap}"${this.dash.length ? ` stroke-dasharray="${this.dash.join(" ")}"` : ""}`;
  }

  stroke() {
    if (this.path) this.add("path", `d="${this.path}" ${this.outline()}`);
  }

  fill() {
    if (this.path) this.add("path", `d="${this.path}" fill="${escaped(this.fillStyle)}"`);
  }

  fillRect(x, y, width, height) {
    this.beginPath();
    this.rect(x, y, width, height);
    this.fill();
  }

  // The text of `write`: its paper is stroked, then it is filled.
  text(text, x, y, drawn) {
    const [, weight, size, family] = /^(\d+) (\d+)px (.*)$/.exec(this.font), [left, base] = this.at(x, y).split(" ");
    this.add("text", `x="${left}" y="${base}" ${drawn} font-size="${size}" font-weight="${weight}" font-family="${escaped(family)}" text-anchor="${ANCHORS[this.textAlign]}"`, escaped(text));
  }

  strokeText(text, x, y) {
    this.text(text, x, y, this.outline());
  }

  fillText(text, x, y) {
    this.text(text, x, y, `fill="${escaped(this.fillStyle)}"`);
  }

  measureText(text) {
    const [, weight, size] = /^(\d+) (\d+)px/.exec(this.font) ?? [null, 400, 12];
    return { width: measure(text, size, weight) };
  }

  document(title) {
    const clips = this.clips.map((path, i) => `<clipPath id="clip-${i + 1}"><path d="${path}"/></clipPath>`).join("");
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${short(this.width)}" height="${short(this.height)}" viewBox="0 0 ${short(this.width)} ${short(this.height)}" role="img">`
      + `<title>${escaped(title)}</title><defs>${clips}</defs>${this.parts.join("")}</svg>\n`;
  }
}
