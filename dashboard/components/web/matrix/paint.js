// Draws the grid: `paint` everything that only new data changes, `mark` what follows the pointer and the focus.

import { FORBIDDEN, MISSING, levels, placeOf } from './data.js';

const LABEL = 44; // CSS pixels that a token label has at most
const packed = (r, g, b) => (255 << 24) | (b << 16) | (g << 8) | r; // little-endian RGBA, as in an ImageData
export const mix = (one, other, part) => one.map((channel, i) => Math.round(channel * (1 - part) + other[i] * part));

/** The 256 colours of the scale, then the ground of forbidden cells and that of missing values. */
export function palette({ colours, forbidden }) {
  const table = new Uint32Array(258);
  for (let i = 0; i < 256; i++) table[i] = packed(colours[3 * i], colours[3 * i + 1], colours[3 * i + 2]);
  table[FORBIDDEN] = packed(...forbidden);
  table[MISSING] = packed(255, 0, 255);
  return table;
}

/** The colour of the lines through forbidden cells. */
export function hatching({ forbidden, dark }) {
  return packed(...mix(forbidden, dark ? [255, 255, 255] : [0, 0, 0], dark ? 0.32 : 0.3));
}

export function paint(context, data, layout, theme, ratio) {
  const table = palette(data);
  const hatch = hatching(data);
  context.clearRect(0, 0, layout.width, layout.height);
  context.textBaseline = 'middle';
  context.fillStyle = theme.text;
  context.globalAlpha = 0.75;
  for (const { text, x, y } of layout.headings) {
    context.font = `${14 * ratio}px ${theme.font}`;
    context.fillText(text, x, y);
  }
  context.globalAlpha = 1;
  for (const panel of data.panels) {
    const box = layout.boxes[panel.index];
    context.putImageData(thumbnail(panel, levels(panel, data.byRow), box, table, hatch, ratio), box.x, box.y);
    context.strokeStyle = theme.border;
    context.lineWidth = Math.max(1, Math.round(ratio));
    const half = context.lineWidth / 2;
    context.strokeRect(box.x - half, box.y - half, box.width + 2 * half, box.height + 2 * half);
    context.font = `${layout.titleSize * ratio}px ${theme.font}`;
    context.fillText(panel.name, box.x, (box.top + box.y) / 2);
    // On the left once for a row of thumbnails: its heads all read the same tokens.
    const labels = { ...box, rows: panel.rows, columns: panel.columns, every: 1 };
    if (layout.labelled) axes(context, panel, labels, theme, ratio, Math.min(12 * ratio, box.step - ratio), panel.column === 0);
  }
}

/** The picture of a matrix whose `cells` stand on the colours of `table`. */
export function thumbnail(panel, cells, { width, height, step }, table, hatch, ratio) {
  const image = new ImageData(width, height);
  const pixels = new Uint32Array(image.data.buffer);
  const columns = spans(width, panel.columns, step);
  const rows = spans(height, panel.rows, step);
  const period = Math.round(6 * ratio);
  const line = Math.max(1, Math.round(ratio));
  for (let y = 0, at = 0; y < height; y++) {
    for (let x = 0; x < width; x++, at++) {
      const level = step >= 1 ? cells[rows[y][0] * panel.columns + columns[x][0]] : strongest(cells, panel, rows[y], columns[x]);
      pixels[at] = level === FORBIDDEN && (x + y) % period < line ? hatch : table[level];
    }
  }
  return image;
}

/** For each pixel, the first cell it shows and the one after the last. */
function spans(size, cells, step) {
  return Array.from({ length: size }, (_, i) => {
    const first = Math.min(cells - 1, Math.floor(step >= 1 ? (i + 0.5) / step : i / step));
    return [first, Math.min(cells, Math.max(first + 1, Math.floor((i + 1) / step)))];
  });
}

/** Where a pixel holds several cells it shows the strongest: a single bright key must not vanish. */
function strongest(cells, panel, rows, columns) {
  let best = FORBIDDEN;
  for (let row = rows[0]; row < rows[1]; row++) {
    for (let column = columns[0]; column < columns[1]; column++) {
      const level = cells[row * panel.columns + column];
      if (level !== FORBIDDEN && (best === FORBIDDEN || level > best)) best = level;
    }
  }
  return best;
}

/**
 * Token labels below a matrix and, with `left`, left of it: one in `every` so many cells of the `box`. Of a long input it
 * shows a window, which begins at the token numbers `first`.
 */
export function axes(context, { queries, keys, first: [down, across] = [0, 0] }, box, theme, ratio, size = labelSize(box, ratio), left = true) {
  context.font = `${size}px ${theme.font}`;
  context.fillStyle = theme.text;
  context.globalAlpha = 0.85;
  context.textAlign = 'right';
  for (const i of left ? named(queries, down, box.rows, box.every) : []) {
    context.fillText(shortened(context, shown(queries[down + i]), LABEL * ratio), box.x - 5 * ratio, box.y + (i + 0.5) * box.step);
  }
  const narrow = box.every * box.step;
  for (const i of named(keys, across, box.columns, box.every)) {
    const label = shortened(context, shown(keys[across + i]), LABEL * ratio);
    const upright = context.measureText(label).width + 3 * ratio <= narrow;
    context.save();
    context.translate(box.x + (i + 0.5) * box.step, box.y + box.height + (upright ? 3 * ratio + size / 2 : 4 * ratio));
    if (!upright) context.rotate(-Math.PI / 2);
    context.textAlign = upright ? 'center' : 'right';
    context.fillText(label, 0, 0);
    context.restore();
  }
  context.textAlign = 'left';
  context.globalAlpha = 1;
}

const labelSize = (box, ratio) => Math.min(13, Math.max(11, (box.every * box.step) / ratio - 2)) * ratio;

/** A token as a label says it: a line end is a sign. */
export const shown = (label) => label.replaceAll('\n', '↵');

/** Which of `count` labels, from `first` on, are written where each needs the room of `every`: as many as have it, and
 * words before blanks and commas, of which every other token of a text is one: one at the end may go without. */
export function named(labels, first, count, every) {
  const found = [];
  for (let from = 0; from < count; from = found.at(-1) + every) {
    const near = Array.from({ length: Math.min(every, count - from) }, (_, i) => from + i);
    const word = near.find((i) => /[\p{L}\p{N}]/u.test(labels[first + i]));
    if (word === undefined && found.length && near.length < every) break;
    found.push(word ?? from);
  }
  return found;
}

function shortened(context, label, room) {
  if (context.measureText(label).width <= room) return label;
  let end = label.length - 1;
  while (end > 1 && context.measureText(`${label.slice(0, end)}…`).width > room) end--;
  return `${label.slice(0, end)}…`;
}

/** The overlay: `cell` {row, column, rows, columns} in every panel of its shape, and the panel in focus, if any. */
export function mark(context, data, layout, theme, ratio, cell, focus) {
  context.clearRect(0, 0, layout.width, layout.height);
  if (cell) {
    const places = data.panels.map((panel) => ({ ...placeOf(panel, cell), box: layout.boxes[panel.index] }));
    crosshairs(context, places.filter((place) => place.row !== undefined), data.dark, ratio);
  }
  if (focus === null) return;
  const box = layout.boxes[focus];
  const edge = 3 * ratio;
  context.strokeStyle = theme.primary;
  context.lineWidth = edge;
  context.strokeRect(box.x - edge / 2, box.y - edge / 2, box.width + edge, box.height + edge);
  // Not by colour alone: the title stands on a solid tab with a mark of its own.
  const text = `▸ ${data.panels[focus].name}`;
  context.font = `600 ${layout.titleSize * ratio}px ${theme.font}`;
  context.textBaseline = 'middle';
  const wide = context.measureText(text).width + 8 * ratio;
  context.fillStyle = theme.primary;
  context.fillRect(box.x - edge, box.top, wide, box.y - box.top - edge + 1);
  context.fillStyle = theme.background;
  context.fillText(text, box.x + ratio, (box.top + box.y - edge) / 2 + ratio);
}

/** A broad frame around a panel that is pointed at elsewhere. */
export function outline(context, box, theme, ratio) {
  const edge = 4 * ratio;
  context.save();
  context.strokeStyle = theme.primary;
  context.lineWidth = edge;
  context.shadowColor = theme.primary;
  context.shadowBlur = 10 * ratio;
  context.strokeRect(box.x - edge / 2, box.y - edge / 2, box.width + edge, box.height + edge);
  context.restore();
}

const LIGHT = 'rgba(255, 255, 255, 0.9)';
const DARK = 'rgba(0, 0, 0, 0.6)';

/** A crosshair at each place {box, row, column}: around the cell's row and column, never over the cell itself. */
export function crosshairs(context, places, dark, ratio) {
  const line = Math.max(1, Math.round(ratio));
  const inner = new Path2D();
  const outer = new Path2D();
  const hair = new Path2D();
  for (const { box, row, column } of places) {
    const across = ends(box.x, column, box.step);
    const down = ends(box.y, row, box.step);
    if (box.step < 4 * ratio) {
      cross(hair, box, across, down, 3 * ratio);
      continue;
    }
    for (const [path, away] of [[inner, line / 2], [outer, 1.5 * line]]) {
      frame(path, [box.x, box.x + box.width], down, away);
      frame(path, across, [box.y, box.y + box.height], away);
    }
  }
  context.lineWidth = line;
  // A dark line and a light one, so that it shows on any colour of any scale.
  stroke(context, outer, DARK);
  stroke(context, inner, LIGHT);
  context.globalAlpha = 0.7;
  stroke(context, hair, dark ? LIGHT : DARK);
  context.globalAlpha = 1;
}

/** For cells too small to frame: one line along the row and one along the column, that end short of the cell. */
function cross(path, box, [left, right], [top, bottom], short) {
  const x = Math.floor((left + right) / 2) + 0.5;
  const y = Math.floor((top + bottom) / 2) + 0.5;
  const limbs = [
    [box.x, y, left - short, y],
    [right + short, y, box.x + box.width, y],
    [x, box.y, x, top - short],
    [x, bottom + short, x, box.y + box.height],
  ];
  for (const [fromX, fromY, toX, toY] of limbs) {
    if (toX < fromX || toY < fromY) continue;
    path.moveTo(fromX, fromY);
    path.lineTo(toX, toY);
  }
}

function frame(path, [left, right], [top, bottom], away) {
  path.rect(left - away, top - away, right - left + 2 * away, bottom - top + 2 * away);
}

function stroke(context, path, style) {
  context.strokeStyle = style;
  context.stroke(path);
}

const ends = (start, index, step) => [start + Math.floor(index * step), start + Math.ceil((index + 1) * step)];
