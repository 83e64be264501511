// The text in small, once for each head: where the blocks stand, and how they are drawn.

import { layOut as layOutText } from '../passage/layout.js';
import { number } from '../passage/paint.js';

const NOMINAL = 560; // CSS pixels of the text that is drawn in small
const LABEL = 20; // above each
const GAP = 12;
const TALLEST = 104; // of one text
const EDGE = 4;

/** {width, height, boxes, panels}: a panel {x, y, width, height, head}, a box {index, x, y, width, height} within it. */
export function layOut({ tokens, heads }, width, ratio, measure) {
  const text = layOutText({ tokens }, NOMINAL, 1, measure);
  const [columns, rows] = [0, 1].map((side) => Math.max(...heads.map((head) => head[1 - side])) + 1);
  const wide = Math.max(24, (width - 2 * EDGE - (columns - 1) * GAP) / columns);
  const across = wide / NOMINAL;
  const top = text.boxes.length ? text.boxes[0].y : 0;
  const down = Math.min(across, TALLEST / (text.height - top));
  const tall = (text.height - top) * down;
  const boxes = text.boxes
    .filter((box) => box.width > 0)
    .map((box) => ({
      index: box.index,
      x: box.x * across * ratio,
      y: (box.y - top) * down * ratio,
      width: Math.max(1, box.width * across * ratio),
      height: Math.max(1, box.height * down * 0.82 * ratio),
    }));
  const panels = heads.map(([layer, head], index) => ({
    index,
    name: `${layer}.${head}`,
    x: (EDGE + head * (wide + GAP)) * ratio,
    y: (layer * (tall + LABEL + GAP) + LABEL) * ratio,
    width: wide * ratio,
    height: tall * ratio,
  }));
  const high = rows * (tall + LABEL + GAP) - GAP + 2 * EDGE;
  return { width: Math.round(width * ratio), height: Math.round(high * ratio), boxes, panels };
}

export function paint(context, data, { width, height, boxes, panels }, theme, ratio) {
  context.clearRect(0, 0, width, height);
  context.textBaseline = 'alphabetic';
  for (const panel of panels) {
    const { row, most } = rowOf(data, panel.index);
    context.font = `600 ${13 * ratio}px ${theme.font}`;
    context.fillStyle = theme.text;
    context.fillText(panel.name, panel.x, panel.y - 6 * ratio);
    const named = context.measureText(panel.name).width;
    context.font = `${13 * ratio}px ${theme.font}`;
    const told = `to ${number(most, 2)}`;
    if (named + context.measureText(told).width + 8 * ratio <= panel.width) {
      context.textAlign = 'right';
      context.fillText(told, panel.x + panel.width, panel.y - 6 * ratio);
      context.textAlign = 'left';
    }
    for (const box of boxes) {
      const value = row[box.index];
      if (Number.isNaN(value)) context.fillStyle = theme.border;
      else {
        const at = 3 * Math.round(255 * (most > 0 ? value / most : 0));
        context.fillStyle = `rgb(${data.colours[at]}, ${data.colours[at + 1]}, ${data.colours[at + 2]})`;
      }
      context.globalAlpha = Number.isNaN(value) ? 0.25 : 1;
      context.fillRect(panel.x + box.x, panel.y + box.y, box.width, box.height);
    }
    context.globalAlpha = 1;
    context.strokeStyle = theme.border;
    context.lineWidth = Math.max(1, ratio);
    context.strokeRect(panel.x - ratio, panel.y - ratio, panel.width + 2 * ratio, panel.height + 2 * ratio);
  }
}

export function mark(context, data, layout, theme, ratio, pointed, chosen) {
  context.clearRect(0, 0, layout.width, layout.height);
  if (chosen !== null && layout.panels[chosen]) outline(context, layout.panels[chosen], data.accent, 3 * ratio);
  if (!pointed || !layout.panels[pointed.panel]) return;
  const panel = layout.panels[pointed.panel];
  if (pointed.panel !== chosen) outline(context, panel, theme.text, 1.5 * ratio);
  if (pointed.index === null) return;
  context.strokeStyle = theme.text;
  context.lineWidth = 1.5 * ratio;
  for (const each of layout.panels) {
    for (const box of layout.boxes) {
      if (box.index === pointed.index) context.strokeRect(each.x + box.x - ratio, each.y + box.y - ratio, box.width + 2 * ratio, box.height + 2 * ratio);
    }
  }
}

function outline(context, { x, y, width, height }, colour, line) {
  context.strokeStyle = colour;
  context.lineWidth = line;
  context.strokeRect(x - line / 2 - 1, y - line / 2 - 1, width + line + 2, height + line + 2);
}

/** What is at (x, y): {panel, index}, index null between words; null beside all panels. */
export function pick({ panels, boxes }, x, y, slack) {
  const panel = panels.find((each) => x >= each.x && x < each.x + each.width && y >= each.y - 20 * slack && y < each.y + each.height);
  if (!panel) return null;
  const [dx, dy] = [x - panel.x, y - panel.y];
  const box = boxes.find((each) => dx >= each.x && dx < each.x + each.width && dy >= each.y && dy < each.y + each.height);
  return { panel: panel.index, index: box ? box.index : null };
}

/** The weights of a head, and the greatest of them. */
export function rowOf({ weights, tokens }, head) {
  const row = weights.subarray(head * tokens.length, (head + 1) * tokens.length);
  return { row, most: row.reduce((most, value) => (value > most ? value : most), 0) };
}
