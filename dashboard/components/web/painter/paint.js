// Draws the mask that is painted: `layOut` its place, `paint` cells and labels, `mark` what follows the pointer.

import { FORBIDDEN } from '../matrix/data.js';
import { axes, crosshairs, hatching, mix, palette, thumbnail } from '../matrix/paint.js';
import { blindRows, counts, size } from './mask.js';

const LABEL = 11; // least room that a label needs along its axis
const MARK = 22; // right of the cells, for the mark of a row that sees nothing
const TITLE = 18; // for the name of an axis
const LINES = 5; // CSS pixels of a square from which on its borders are drawn
const [FULL, SOME] = [255, [80, 180]]; // levels of a square that may be seen wholly, and in part

/** The squares' box in device pixels, and the size of the canvas around it. `measure(text, size)` is a text's width. */
export function layOut({ side: n, squares: { queries, keys }, height }, width, ratio, measure) {
  const widest = (labels) => labels.reduce((most, label) => Math.max(most, measure(label, 13)), 0);
  const room = (labels) => Math.min(52, Math.max(16, widest(labels)) + 8);
  const [left, below] = [room(queries) + TITLE, room(keys) + TITLE];
  const side = Math.max(60, Math.min(width - left - MARK, height - below));
  const step = (side * ratio) / n >= 4 ? Math.floor((side * ratio) / n) : (side * ratio) / n;
  const whole = Math.round(step * n);
  const x = Math.round(left * ratio + Math.max(0, (width - left - MARK) * ratio - whole) / 2);
  const every = Math.max(1, Math.ceil((LABEL * ratio) / step));
  const y = Math.ceil(Math.max(ratio, (LABEL * ratio - step) / 2)); // the first label may be higher than its square
  const box = { x, y, width: whole, height: whole, rows: n, columns: n, step, every, left, below };
  return { width: Math.floor(width * ratio), height: Math.ceil(box.y + whole + below * ratio), box };
}

/** The square at a point; `near` takes the nearest one for a point beside them: a stroke may leave the canvas. */
export function pick({ box }, x, y, near = false) {
  const place = { row: Math.floor((y - box.y) / box.step), column: Math.floor((x - box.x) / box.step) };
  const clamp = (value) => Math.max(0, Math.min(box.rows - 1, value));
  const inside = place.row === clamp(place.row) && place.column === clamp(place.column);
  if (near) return { row: clamp(place.row), column: clamp(place.column) };
  return inside ? place : null;
}

/** Everything but what follows the pointer. */
export function paint(context, data, layout, theme, ratio, cells) {
  context.clearRect(0, 0, layout.width, layout.height);
  context.textBaseline = 'middle';
  const { box } = layout;
  axes(context, data.squares, box, theme, ratio);
  context.fillStyle = data.muted;
  context.font = `${14 * ratio}px ${theme.font}`;
  context.textAlign = 'center';
  context.fillText('key: looked at', box.x + box.width / 2, box.y + box.height + (box.below - TITLE / 2 + 1) * ratio);
  context.save();
  context.translate(box.x - (box.left - TITLE / 2) * ratio, box.y + box.height / 2);
  context.rotate(-Math.PI / 2);
  context.fillText('query: who looks', 0, 0);
  context.restore();
  context.textAlign = 'left';
  cellsAndMarks(context, data, layout, theme, ratio, cells);
}

/** All that a stroke changes: the cells, and the marks of the rows that see nothing. */
export function repaint(context, data, layout, theme, ratio, cells) {
  const { box } = layout;
  context.clearRect(box.x + box.width + 2 * ratio, 0, MARK * ratio, box.y + box.height + ratio);
  cellsAndMarks(context, data, layout, theme, ratio, cells);
}

function cellsAndMarks(context, data, { box }, theme, ratio, cells) {
  const table = palette({ colours: ramp(data), forbidden: data.forbidden });
  const image = thumbnail({ rows: box.rows, columns: box.columns }, levels(data, cells), box, table, hatching(data), ratio);
  context.putImageData(image, box.x, box.y);
  context.fillStyle = theme.background;
  const line = Math.max(1, Math.round(ratio));
  for (let i = 1; i < box.rows && box.step >= LINES * ratio; i++) {
    const at = Math.round(i * box.step);
    context.fillRect(box.x + at - line, box.y, line, box.height);
    context.fillRect(box.x, box.y + at - line, box.width, line);
  }
  context.strokeStyle = theme.border;
  context.lineWidth = line;
  context.strokeRect(box.x - 0.5, box.y - 0.5, box.width + 1, box.height + 1);
  const start = box.x + box.width + 2 * ratio;
  context.fillStyle = data.blind;
  context.textBaseline = 'middle';
  context.textAlign = 'left';
  context.font = `700 ${Math.max(9 * ratio, Math.min(18 * ratio, 1.1 * box.step))}px ${theme.font}`;
  const blind = new Set(blindRows(cells, data.n).map((row) => Math.floor(row / data.squares.factor)));
  for (const row of blind) context.fillText('⊘', start, box.y + (row + 0.5) * box.step);
}

/** Each square's place on the scale: none of its cells may be seen, some, the more the further up, or all. */
function levels(data, cells) {
  const [low, high] = SOME;
  return Uint16Array.from(counts(cells, data), (seen, index) => {
    if (seen === 0) return FORBIDDEN;
    const share = seen / size(data, index);
    return share === 1 ? FULL : Math.round(low + share * (high - low));
  });
}

/** 256 colours from that of forbidden cells to that of seen ones. */
const ramp = ({ forbidden, colours }) => Array.from({ length: 256 }, (_, i) => mix(forbidden, colours, i / 255)).flat();

/** The overlay: a crosshair at a square, and a frame around each of those that the brush would touch. */
export function mark(context, data, layout, theme, ratio, cell, brushed) {
  context.clearRect(0, 0, layout.width, layout.height);
  const { box } = layout;
  if (cell) crosshairs(context, [{ box, ...cell }], data.dark, ratio);
  const edge = new Path2D();
  for (const index of brushed) {
    const [row, column] = [Math.floor(index / data.side), index % data.side];
    const [x, y, step] = [box.x + column * box.step, box.y + row * box.step, box.step];
    if (!brushed.has(index - data.side)) line(edge, x, y, x + step, y);
    if (!brushed.has(index + data.side)) line(edge, x, y + step, x + step, y + step);
    if (column === 0 || !brushed.has(index - 1)) line(edge, x, y, x, y + step);
    if (column === data.side - 1 || !brushed.has(index + 1)) line(edge, x + step, y, x + step, y + step);
  }
  context.lineCap = 'square';
  for (const [wide, colour] of [[4, theme.background], [2, theme.primary]]) {
    context.lineWidth = wide * ratio;
    context.strokeStyle = colour;
    context.stroke(edge);
  }
}

function line(path, fromX, fromY, toX, toY) {
  path.moveTo(fromX, fromY);
  path.lineTo(toX, toY);
}
