// Draws a head: `paint` everything that only new data changes, `mark` what follows the pointer and the lock.

import { levels } from '../matrix/data.js';
import { axes, crosshairs, hatching, named, palette, shortened, shown, thumbnail } from '../matrix/paint.js';
import { allowed, indexOf, number } from './data.js';

const FAINT = 0.02; // weaker lines are not drawn: thousands of them would be a grey veil
const TOLD = 3; // so many weights are written beside their tokens

export function paint(context, data, layout, theme, ratio) {
  const hatch = hatching(data);
  context.clearRect(0, 0, layout.width, layout.height);
  for (const box of layout.boxes) {
    if (box.kind === 'arcs') paintArcs(context, data, box, theme, ratio);
    else {
      const view = box.kind === 'whole' ? { ...data.whole, low: 0, high: 1, digits: 2 } : data.views[box.view];
      const cells = levels(view, data.byRow && view.low === 0);
      const table = palette({ colours: view.colours, forbidden: data.forbidden });
      context.putImageData(thumbnail(view, cells, box, table, hatch, ratio), box.x, box.y);
      context.strokeStyle = theme.border;
      context.lineWidth = Math.max(1, Math.round(ratio));
      context.strokeRect(box.x - 0.5, box.y - 0.5, box.width + 1, box.height + 1);
      heading(context, data, box, view, theme, ratio);
      if (box.kind === 'view') {
        if (data.marks) outline(context, data, box, ratio);
        axes(context, data, box, theme, ratio);
      }
    }
  }
}

/** The name of a matrix on the left, its scale on the right: a slim bar with its two ends. */
function heading(context, data, box, view, theme, ratio) {
  const middle = (box.top + box.y) / 2 - ratio;
  const title = box.kind === 'whole' ? wholeTitle(data) : view.title;
  context.textBaseline = 'middle';
  context.fillStyle = theme.text;
  context.font = `600 ${13 * ratio}px ${theme.font}`;
  const own = data.byRow && view.low === 0;
  const [low, high] = own ? ['0', 'row’s most'] : [number(view.low, view.low === 0 ? 0 : view.digits), number(view.high, view.high === 1 ? 0 : view.digits)];
  context.font = `${11 * ratio}px ${theme.font}`;
  const bar = 34 * ratio;
  const gap = 4 * ratio;
  const room = bar + 2 * gap + context.measureText(low).width + context.measureText(high).width;
  let x = box.x + box.width - room;
  const titled = Math.max(0, box.width - room - 2 * gap);
  if (titled > 40 * ratio) {
    context.fillStyle = data.muted;
    context.fillText(low, x, middle);
    x += context.measureText(low).width + gap;
    for (let i = 0; i < bar; i++) {
      const at = 3 * Math.floor((i / bar) * 255);
      context.fillStyle = `rgb(${view.colours[at]}, ${view.colours[at + 1]}, ${view.colours[at + 2]})`;
      context.fillRect(x + i, middle - 4 * ratio, 1, 8 * ratio);
    }
    context.fillStyle = data.muted;
    context.fillText(high, x + bar + gap, middle);
  }
  context.fillStyle = theme.text;
  context.font = `600 ${13 * ratio}px ${theme.font}`;
  context.fillText(fitting(context, title, titled > 40 * ratio ? titled : box.width), box.x, middle);
}

/** A title; what it adds after a colon is left out where there is no room for it. */
function fitting(context, title, room) {
  return context.measureText(title).width <= room ? title : shortened(context, title.split(': ')[0], room);
}

function wholeTitle({ queries, keys, whole: { factor } }) {
  return `All ${queries.length} × ${keys.length}${factor > 1 ? `, strongest of ${factor} × ${factor}` : ''}: click to move the frame`;
}

/** A thin frame around each marked cell. */
function outline(context, { marks, mark, columns }, box, ratio) {
  if (box.step < 4 * ratio) return;
  context.strokeStyle = mark;
  context.lineWidth = Math.max(1, 1.5 * ratio);
  marks.forEach((marked, i) => {
    if (!marked) return;
    const [row, column] = [Math.floor(i / columns), i % columns];
    context.strokeRect(box.x + column * box.step + ratio, box.y + row * box.step + ratio, box.step - 2 * ratio, box.step - 2 * ratio);
  });
}

// --- arcs

const rowAt = (box, i) => box.y + (i + 0.5) * box.step;
const keyAt = (box, i) => box.y + (i + 0.5) * box.keyStep;

function paintArcs(context, data, box, theme, ratio) {
  context.textBaseline = 'middle';
  context.fillStyle = theme.text;
  context.font = `600 ${13 * ratio}px ${theme.font}`;
  const middle = (box.top + box.y) / 2 - ratio;
  const rows = named(data.queries, data.first[0], box.rows, box.every);
  const drawn = new Set(box.crowded ? rows : Array(box.rows).keys());
  context.fillText(drawn.size < box.rows ? `${drawn.size} of ${box.rows} rows` : 'Query', box.start, middle);
  context.textAlign = 'right';
  context.fillText('Key', box.x + box.width + box.wide, middle);
  tokens(context, data, box, theme, ratio);
  const [{ values }] = data.views;
  for (let i = 0; i < values.length; i++) {
    if (drawn.has(Math.floor(i / data.columns)) && allowed(data, i) && values[i] >= FAINT) line(context, data, box, i, values[i], ratio);
  }
  context.globalAlpha = 1;
}

function tokens(context, data, box, theme, ratio) {
  const [down, across] = data.first;
  context.fillStyle = theme.text;
  context.textBaseline = 'middle';
  context.font = `${13 * ratio}px ${theme.font}`;
  context.textAlign = 'right';
  for (const i of named(data.queries, down, box.rows, box.every)) write(data.queries[down + i], box.x - 6 * ratio, rowAt(box, i));
  context.textAlign = 'left';
  for (const i of named(data.keys, across, box.columns, box.everyKey)) write(data.keys[across + i], box.x + box.width + 6 * ratio, keyAt(box, i));
  function write(label, x, y) {
    context.fillText(shortened(context, shown(label), box.wide - 6 * ratio), x, y);
  }
}

function line(context, data, box, index, weight, ratio) {
  const [row, column] = [Math.floor(index / data.columns), index % data.columns];
  const bend = 0.45 * box.width;
  const [from, to] = [rowAt(box, row), keyAt(box, column)];
  context.globalAlpha = Math.min(1, 0.08 + 0.92 * weight);
  context.lineWidth = (0.5 + 2.5 * weight) * ratio;
  context.strokeStyle = data.accent;
  context.beginPath();
  context.moveTo(box.x, from);
  context.bezierCurveTo(box.x + bend, from, box.x + box.width - bend, to, box.x + box.width, to);
  context.stroke();
}

/** The lines of one token, those of the others gone: `token` is {row} or {column}, `locked` whether it stays so. */
function alone(context, data, box, theme, ratio, token, locked) {
  const [{ values }] = data.views;
  context.fillStyle = theme.background;
  context.globalAlpha = 0.9;
  context.fillRect(box.x, box.y, box.width, box.height);
  context.globalAlpha = 1;
  const found = [];
  const asks = token.row !== undefined;
  for (let i = 0; i < (asks ? box.columns : box.rows); i++) {
    const cell = asks ? [token.row, data.first[1] + i] : [data.first[0] + i, token.column];
    const index = indexOf(data, ...cell);
    if (allowed(data, index)) found.push({ place: i, index, weight: values[index] });
  }
  for (const { index, weight } of found) if (weight >= 0.002) line(context, data, box, index, weight, ratio);
  context.globalAlpha = 1;
  context.font = `600 ${12 * ratio}px ${theme.font}`;
  context.textBaseline = 'middle';
  const told = found.filter(({ weight }) => weight >= 0.05).sort((one, other) => other.weight - one.weight).slice(0, TOLD);
  const written = []; // where; the stronger come first, and none is written over
  for (const { place, weight } of told) {
    const y = asks ? keyAt(box, place) : rowAt(box, place);
    if (written.some((other) => Math.abs(other - y) < 14 * ratio)) continue;
    written.push(y);
    const text = weight.toFixed(2);
    const wide = context.measureText(text).width + 4 * ratio;
    const x = asks ? box.x + box.width - wide : box.x;
    context.fillStyle = theme.background;
    context.fillRect(x, y - 7 * ratio, wide, 14 * ratio);
    context.fillStyle = theme.text;
    context.fillText(text, x + 2 * ratio, y);
  }
  name(context, data, box, theme, ratio, token, locked);
}

/** The token whose lines are drawn, on a ground of its own; a locked one in a frame as well. */
function name(context, data, box, theme, ratio, { row, column }, locked) {
  const asks = row !== undefined;
  const label = asks ? data.queries[row] : data.keys[column];
  const y = asks ? rowAt(box, row - data.first[0]) : keyAt(box, column - data.first[1]);
  context.font = `600 ${13 * ratio}px ${theme.font}`;
  const wide = Math.max(context.measureText(shown(label)).width + 8 * ratio, 18 * ratio);
  const x = asks ? box.x - 4 * ratio - wide : box.x + box.width + 4 * ratio;
  const half = 9 * ratio;
  context.fillStyle = locked ? theme.primary : theme.background;
  context.strokeStyle = theme.primary;
  context.lineWidth = 2 * ratio;
  context.fillRect(x, y - half, wide, 2 * half);
  context.strokeRect(x, y - half, wide, 2 * half);
  context.fillStyle = locked ? theme.background : theme.text;
  context.textAlign = 'center';
  context.fillText(shown(label), x + wide / 2, y);
  context.textAlign = 'left';
}

/** The overlay: `cell` {row, column} in every matrix, the lines of a hovered or locked token, the window in the whole. */
export function mark(context, data, layout, theme, ratio, cell, locked) {
  context.clearRect(0, 0, layout.width, layout.height);
  const places = [];
  const spoken = locked ?? (cell && (cell.row === undefined || cell.column === undefined ? cell : { row: cell.row }));
  for (const box of layout.boxes) {
    if (box.kind === 'arcs') {
      if (spoken && inView(data, spoken)) alone(context, data, box, theme, ratio, spoken, locked !== null);
    } else if (box.kind === 'whole') {
      frameWindow(context, data, box, theme, ratio);
    } else {
      if (locked) bar(context, data, box, theme, ratio, locked);
      const at = cell && (cell.at ?? cell);
      if (at && indexOf(data, at.row, at.column) >= 0) {
        places.push({ box, row: at.row - data.first[0], column: at.column - data.first[1] });
      }
    }
  }
  if (places.length) crosshairs(context, places, data.dark, ratio);
}

function inView({ first, rows, columns }, { row, column }) {
  return row !== undefined ? row >= first[0] && row < first[0] + rows : column >= first[1] && column < first[1] + columns;
}

/** The locked row or column of a matrix, in a frame. */
function bar(context, data, box, theme, ratio, token) {
  if (!inView(data, token)) return;
  context.strokeStyle = theme.primary;
  context.lineWidth = 2 * ratio;
  if (token.row !== undefined) context.strokeRect(box.x - ratio, box.y + (token.row - data.first[0]) * box.step - ratio, box.width + 2 * ratio, box.step + 2 * ratio);
  else context.strokeRect(box.x + (token.column - data.first[1]) * box.step - ratio, box.y - ratio, box.step + 2 * ratio, box.height + 2 * ratio);
}

/** Which part of the whole the views show. */
function frameWindow(context, { first, rows, columns, whole }, box, theme, ratio) {
  const size = box.step / whole.factor;
  context.strokeStyle = theme.primary;
  context.lineWidth = 2 * ratio;
  context.strokeRect(box.x + first[1] * size, box.y + first[0] * size, columns * size, rows * size);
}
