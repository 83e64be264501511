// Draws a passage: `paint` the words on their colours, `mark` the arcs of the chosen one and what the pointer is on.

import { luminance, rgb } from '../kit/theme.js';
import { blank, boxOf, runs } from './layout.js';

const MOST = 12; // arcs
const FAINT = 0.02; // weaker ones are not drawn
const TOLD = 3; // so many of their weights are written beside them
const FADED = 0.6; // opacity of the letters of the lowest value
const FULL = 0.25; // of the scale, from which on letters are as strong as anywhere
const FEET = 0.64; // of a line's height, where letters stand

export function paint(context, data, layout, theme, ratio) {
  context.clearRect(0, 0, layout.width, layout.height);
  context.textBaseline = 'alphabetic';
  if (data.ground) scale(context, data, layout, theme, ratio);
  for (const box of layout.boxes) {
    const share = data.ground ? shareOf(data.ground, box.index) : NaN;
    const ground = Number.isNaN(share) ? null : colourOf(data.ground, share);
    if (ground) {
      context.fillStyle = `rgb(${ground.join(', ')})`;
      context.fillRect(box.x, box.y + 2 * ratio, box.width, box.height - 4 * ratio);
    }
    letters(context, box, data, layout, theme);
    if (box.index < data.given && box.text.trim()) {
      context.fillStyle = data.muted;
      context.fillRect(box.x, box.y + 0.8 * box.height, box.width, Math.max(1, ratio));
    }
  }
}

/** A box's letters, in an ink that its ground lets one read. */
function letters(context, box, data, layout, theme) {
  const share = data.ground ? shareOf(data.ground, box.index) : NaN;
  const ink = Number.isNaN(share) ? theme.text : readable(colourOf(data.ground, share), theme);
  const faded = data.ground?.faded && box.index !== data.chosen && !(share > FULL);
  context.globalAlpha = faded ? FADED + ((1 - FADED) * (share || 0)) / FULL : 1;
  write(context, box, ink, data, layout.size, theme);
  context.globalAlpha = 1;
}

/** One piece of a word; line ends are quieter than letters. */
function write(context, { x, y, height, text }, ink, data, size, theme) {
  context.font = `${size}px ${theme.font}`;
  let at = x;
  const parts = runs(text);
  for (const [i, run] of parts.entries()) {
    if (!run.trim()) {
      at += blank(run) * size;
      continue;
    }
    const [word, end] = run.endsWith('↵') ? [run.slice(0, -1), '↵'] : [run, ''];
    context.fillStyle = ink;
    if (word) context.fillText(word, at, y + FEET * height);
    if (end) {
      const alpha = context.globalAlpha;
      context.globalAlpha = 0.55;
      context.fillText(end, at + (word ? context.measureText(word).width : 0), y + FEET * height);
      context.globalAlpha = alpha;
    }
    if (i < parts.length - 1) at += context.measureText(run).width; // of the last nobody asks how wide it is
  }
}

/** What the colours mean: a slim bar with its two ends, above the words on the right. */
function scale(context, { ground, muted }, layout, theme, ratio) {
  const [bar, gap] = [90 * ratio, 6 * ratio];
  const [low, high] = [number(ground.low, ground.low === 0 ? 0 : ground.digits), number(ground.high, ground.high === 1 ? 0 : ground.digits)];
  const feet = 15 * ratio;
  context.font = `${14 * ratio}px ${theme.font}`;
  context.fillStyle = muted;
  let x = layout.left;
  for (const text of [ground.title, low]) {
    context.fillText(text, x, feet);
    x += context.measureText(text).width + (text === low ? gap : 2 * gap);
  }
  for (let i = 0; i < bar; i++) {
    context.fillStyle = `rgb(${colourOf(ground, i / bar).join(', ')})`;
    context.fillRect(x + i, feet - 10 * ratio, 1, 11 * ratio);
  }
  context.fillStyle = muted;
  context.fillText(high, x + bar + gap, feet);
}

/** The scale stays in sight, over the words, where the passage is scrolled `top` pixels down. */
export function hold(context, data, layout, theme, ratio, top) {
  context.save();
  context.translate(0, top);
  context.fillStyle = theme.background; // the page's own
  context.fillRect(0, 0, layout.width, layout.head);
  scale(context, data, layout, theme, ratio);
  context.restore();
}

export function mark(context, data, layout, theme, ratio, pointed, chosen) {
  context.clearRect(0, 0, layout.width, layout.height);
  if (data.arcs && chosen === data.chosen && chosen !== null) arcs(context, data, layout, theme, ratio);
  frame(context, layout, chosen, data.accent, 2.5 * ratio);
  frame(context, layout, pointed, theme.text, 1.5 * ratio);
}

function frame(context, { boxes }, index, colour, width) {
  if (index === null || index === undefined) return;
  context.strokeStyle = colour;
  context.lineWidth = width;
  for (const box of boxes) {
    if (box.index === index) context.strokeRect(box.x, box.y + width, box.width, box.height - 2 * width);
  }
}

/** From the chosen word to those with the greatest weights, the thicker the greater; the greatest are told. */
function arcs(context, data, layout, theme, ratio) {
  context.textBaseline = 'alphabetic';
  const from = boxOf(layout, data.chosen);
  if (!from) return;
  const far = strongest(data.arcs, data.chosen).map(({ index, value }) => ({ to: boxOf(layout, index), value }));
  context.strokeStyle = context.fillStyle = data.accent;
  context.lineCap = 'round';
  for (const { to, value } of far) {
    if (!to) continue;
    const [x1, y1, x2, y2] = [middle(from), from.y + 3 * ratio, middle(to), to.y + 3 * ratio];
    const rise = 12 * ratio; // no higher than the gap between two lines
    context.globalAlpha = 0.35 + 0.5 * Math.min(1, value * 2);
    context.lineWidth = (1 + 5 * value) * ratio;
    context.beginPath();
    context.moveTo(x1, y1);
    context.bezierCurveTo(x1, y1 - rise, x2, y2 - rise, x2, y2);
    context.stroke();
    context.beginPath();
    context.arc(x2, y2, (2 + 3 * value) * ratio, 0, 2 * Math.PI);
    context.fill();
  }
  context.globalAlpha = 1;
  if ('globalCompositeOperation' in context) { // a canvas, and not vectors
    context.globalCompositeOperation = 'source-atop'; // only where an arc is: letters stand over it
    for (const box of layout.boxes) letters(context, box, data, layout, theme);
    context.globalCompositeOperation = 'source-over';
  }
  context.font = `600 ${13 * ratio}px ${theme.font}`;
  const taken = [];
  for (const { to, value } of far.slice(0, TOLD)) if (to) tag(context, to, number(value, 2), taken, layout, theme, ratio);
}

/** A weight on a ground of its own, above its word; where another stands already, none. */
function tag(context, box, text, taken, layout, theme, ratio) {
  const wide = context.measureText(text).width + 6 * ratio;
  const high = 15 * ratio;
  const x = Math.min(middle(box) - wide / 2, layout.width - wide);
  const y = box.y - 9 * ratio;
  if (taken.some((other) => Math.abs(other.y - y) < high && Math.abs(other.x - x) < wide)) return;
  taken.push({ x, y });
  context.fillStyle = theme.background;
  context.fillRect(x, y, wide, high);
  context.fillStyle = theme.text;
  context.fillText(text, x + 3 * ratio, y + 12 * ratio);
}

const middle = ({ x, width }) => x + width / 2;

/** The words with the greatest weights, the greatest first. */
export function strongest(weights, except) {
  return [...weights]
    .map((value, index) => ({ value, index }))
    .filter(({ value, index }) => value >= FAINT && index !== except)
    .sort((one, other) => other.value - one.value)
    .slice(0, MOST);
}

/** Where a word's value lies between the ends of its scale, 0 to 1; NaN where there is none. */
function shareOf({ values, low, high }, index) {
  return Math.max(0, Math.min(1, (values[index] - low) / (high - low)));
}

const colourOf = ({ colours }, share) => colours.subarray(3 * Math.round(255 * share), 3 * Math.round(255 * share) + 3);

/** Of the page's ink and its ground, the one that stands out more from a colour (WCAG 2.2, "contrast ratio"). */
function readable(ground, { text, background }) {
  const light = luminance(ground);
  const ratio = (colour) => {
    const [bright, dim] = [light, luminance(rgb(colour))].sort((one, other) => other - one);
    return (bright + 0.05) / (dim + 0.05);
  };
  return ratio(text) >= ratio(background) ? text : background;
}

export const number = (value, digits) => value.toFixed(digits).replace('-', '−');
