// A drawing context that writes SVG: what is painted on a canvas can be painted on it, and letters stay letters.
//
// By hand: browsers give no such context, and libraries for one (canvas2svg, svgcanvas) are many times as long, for what
// our pictures never call.

import { escaped } from './page.js';

const STATE = ['fillStyle', 'strokeStyle', 'lineWidth', 'lineCap', 'lineJoin', 'globalAlpha', 'font', 'textAlign', 'textBaseline'];
const ANCHOR = { left: 'start', start: 'start', center: 'middle', right: 'end', end: 'end' };
// Of a line of text, by how much of the letters' size the given height lies above their feet.
const FEET = { alphabetic: 0, middle: 0.35, top: 0.8, hanging: 0.8, bottom: -0.2, ideographic: -0.2 };

/** The subset of CanvasRenderingContext2D that our pictures use. Without Path2D, which cannot be read. */
export class SvgContext {
  constructor(width, height) {
    Object.assign(this, { width, height, parts: [], stack: [], path: [], dash: [], matrix: new DOMMatrix() });
    this.probe = document.createElement('canvas').getContext('2d');
    for (const name of STATE) this[name] = this.probe[name];
  }

  /** One document of several layers, the lowest first, on a ground; `ratio` units are a CSS pixel. */
  static document(layers, ground, ratio) {
    const [{ width, height }] = layers;
    const size = `width="${width / ratio}" height="${height / ratio}" viewBox="0 0 ${width} ${height}"`;
    const sheet = `<rect width="${width}" height="${height}" fill="${escaped(ground)}"/>`;
    return `<svg xmlns="http://www.w3.org/2000/svg" ${size}>\n${sheet}\n${layers.flatMap(({ parts }) => parts).join('\n')}\n</svg>`;
  }

  save() {
    this.stack.push([Object.fromEntries(STATE.map((name) => [name, this[name]])), this.dash, this.matrix]);
  }

  restore() {
    if (!this.stack.length) return;
    const [state, dash, matrix] = this.stack.pop();
    Object.assign(this, state, { dash, matrix });
  }

  translate(x, y) {
    this.matrix = this.matrix.translate(x, y);
  }

  rotate(angle) {
    this.matrix = this.matrix.rotate((angle * 180) / Math.PI);
  }

  setLineDash(lengths) {
    this.dash = lengths;
  }

  measureText(text) {
    this.probe.font = this.font;
    return this.probe.measureText(text);
  }

  /** The whole sheet: it is empty when painting begins. A part of it cannot be wiped. */
  clearRect(x, y, width, height) {
    if (x > 0 || y > 0 || width < this.width || height < this.height) throw new Error('only a whole picture can be cleared');
    this.parts.length = 0;
  }

  fillRect(x, y, width, height) {
    this.add(`rect x="${x}" y="${y}" width="${width}" height="${height}" ${this.filled()}`);
  }

  strokeRect(x, y, width, height) {
    this.add(`rect x="${x}" y="${y}" width="${width}" height="${height}" ${this.stroked()}`);
  }

  fillText(text, x, y) {
    const font = this.fontParts();
    const feet = y + FEET[this.textBaseline] * font.size;
    const letters = `font-family="${escaped(font.family)}" font-size="${font.size}" font-weight="${font.weight}"`;
    const anchor = `text-anchor="${ANCHOR[this.textAlign]}" xml:space="preserve"`;
    this.add(`text x="${short(x)}" y="${short(feet)}" ${letters} ${anchor} ${this.filled()}`, `${escaped(text)}</text>`);
  }

  /** The pixels as they are, like a canvas': nothing of the drawing state applies to them. */
  putImageData(image, x, y) {
    this.parts.push(picture(image, x, y));
  }

  beginPath() {
    this.path = [];
  }

  moveTo(x, y) {
    this.path.push(`M${short(x)} ${short(y)}`);
  }

  lineTo(x, y) {
    this.path.push(`${this.path.length ? 'L' : 'M'}${short(x)} ${short(y)}`);
  }

  bezierCurveTo(...points) {
    this.path.push(`C${points.map(short).join(' ')}`);
  }

  roundRect(x, y, width, height, radius) {
    const r = Math.min(radius, width / 2, height / 2);
    const corner = (right, down) => `a${short(r)} ${short(r)} 0 0 1 ${short(right * r)} ${short(down * r)}`;
    const [across, down] = [width - 2 * r, height - 2 * r];
    const top = `M${short(x + r)} ${short(y)}h${short(across)}${corner(1, 1)}v${short(down)}`;
    this.path.push(`${top}${corner(-1, 1)}h${short(-across)}${corner(-1, -1)}v${short(-down)}${corner(1, -1)}Z`);
  }

  /** Clockwise; a full circle is two halves, for SVG has no arc that ends where it begins. */
  arc(x, y, radius, from, to) {
    const at = (angle) => `${short(x + radius * Math.cos(angle))} ${short(y + radius * Math.sin(angle))}`;
    const turn = Math.min(to - from, 2 * Math.PI);
    const half = from + turn / 2;
    const bow = `A${short(radius)} ${short(radius)} 0 0 1`;
    this.path.push(`${this.path.length ? 'L' : 'M'}${at(from)}${bow} ${at(half)}${bow} ${at(from + turn)}`);
  }

  fill(path) {
    this.draw(path, this.filled());
  }

  stroke(path) {
    this.draw(path, this.stroked());
  }

  draw(path, look) {
    if (path !== undefined) throw new Error('a Path2D cannot be written as SVG');
    this.add(`path d="${this.path.join('')}" ${look}`);
  }

  add(open, content) {
    this.parts.push(`<${open} ${this.placed()}${content === undefined ? '/>' : `>${content}`}`);
  }

  placed() {
    const { a, b, c, d, e, f } = this.matrix;
    return this.matrix.isIdentity ? '' : `transform="matrix(${[a, b, c, d, e, f].map(short).join(' ')})"`;
  }

  filled() {
    return `fill="${escaped(this.fillStyle)}" opacity="${this.globalAlpha}"`;
  }

  stroked() {
    const dash = this.dash.length ? `stroke-dasharray="${this.dash.join(' ')}"` : '';
    const line = `stroke-width="${this.lineWidth}" stroke-linecap="${this.lineCap}" stroke-linejoin="${this.lineJoin}"`;
    return `fill="none" stroke="${escaped(this.strokeStyle)}" ${line} ${dash} opacity="${this.globalAlpha}"`;
  }

  /** The browser has read the font, and says it in an order of its own: "600 13px family". */
  fontParts() {
    this.probe.font = this.font;
    const [, weight = '', size, family] = /^(.*?)\s*([\d.]+)px\s+(.*)$/.exec(this.probe.font);
    return { weight: /bold|\d{3}/.exec(weight)?.[0] ?? '400', size: Number(size), family };
  }
}

/** Pixels as an embedded PNG; enlarged, they stay cells. */
function picture(image, x, y) {
  const { width, height } = image;
  const canvas = Object.assign(document.createElement('canvas'), { width, height });
  canvas.getContext('2d').putImageData(image, 0, 0);
  const place = `x="${x}" y="${y}" width="${width}" height="${height}" preserveAspectRatio="none"`;
  return `<image ${place} style="image-rendering: pixelated" href="${canvas.toDataURL('image/png')}"/>`;
}

const short = (number) => String(Math.round(number * 1000) / 1000);
