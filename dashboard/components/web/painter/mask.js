// A mask that is being painted: which squares a brush touches, what they hold, and its text. Cells are bytes, row by row,
// 1 = may see. A square is one cell, or of many factor × factor of them; those at the far ends may be smaller.

import { fromBase64, toBase64 } from '../kit/base64.js';

export const BRUSHES = ['cell', 'row', 'column', 'diagonal', 'antidiagonal', 'box'];

/**
 * The squares, of `n` a side, that `brush` touches when it is drawn from one to another, each {row, column}; `mirrors`
 * {main, anti} says at which diagonals it is mirrored. The result is a Set of indices.
 */
export function touched(brush, n, from, to, mirrors = {}) {
  const found = new Set();
  const add = (row, column) => {
    if (row < 0 || column < 0 || row >= n || column >= n) return;
    const images = [[row, column]];
    if (mirrors.main) images.push(...images.map(([q, k]) => [k, q]));
    if (mirrors.anti) images.push(...images.map(([q, k]) => [n - 1 - k, n - 1 - q]));
    for (const [q, k] of images) found.add(q * n + k);
  };
  if (brush === 'box') {
    for (const row of span(from.row, to.row)) for (const column of span(from.column, to.column)) add(row, column);
    return found;
  }
  for (const { row, column } of between(from, to)) {
    if (brush === 'cell') add(row, column);
    for (let i = 0; brush !== 'cell' && i < n; i++) {
      if (brush === 'row') add(row, i);
      else if (brush === 'column') add(i, column);
      else if (brush === 'diagonal') add(i, i + column - row);
      else add(i, row + column - i);
    }
  }
  return found;
}

const span = (one, other) => Array.from({ length: Math.abs(other - one) + 1 }, (_, i) => Math.min(one, other) + i);

/** Those on the way from one to another: a quick hand leaves no gaps. */
function between(from, to) {
  const steps = Math.max(Math.abs(to.row - from.row), Math.abs(to.column - from.column), 1);
  return Array.from({ length: steps + 1 }, (_, i) => ({
    row: Math.round(from.row + ((to.row - from.row) * i) / steps),
    column: Math.round(from.column + ((to.column - from.column) * i) / steps),
  }));
}

/** The first cell of a square's row or column, and the one after its last. */
const ends = ({ n, squares: { factor } }, i) => [i * factor, Math.min(n, (i + 1) * factor)];

/** Set all cells of the squares. */
export function fill(cells, data, indices, value) {
  for (const index of indices) {
    const [top, bottom] = ends(data, Math.floor(index / data.side));
    const [left, right] = ends(data, index % data.side);
    for (let row = top; row < bottom; row++) cells.fill(value, row * data.n + left, row * data.n + right);
  }
}

/** Of each square, how many of its cells may be seen. */
export function counts(cells, { n, side, squares: { factor } }) {
  const found = new Uint32Array(side ** 2);
  for (let row = 0, i = 0; row < n; row++) {
    const first = Math.floor(row / factor) * side;
    for (let column = 0; column < n; column++, i++) found[first + Math.floor(column / factor)] += cells[i];
  }
  return found;
}

/** How many cells a square has. */
export function size(data, index) {
  const [top, bottom] = ends(data, Math.floor(index / data.side));
  const [left, right] = ends(data, index % data.side);
  return (bottom - top) * (right - left);
}

/** The cells as `numpy.packbits` writes them, in base64: what Python is sent, and what the history keeps. */
export function pack(cells) {
  const bytes = new Uint8Array(Math.ceil(cells.length / 8));
  for (let i = 0; i < cells.length; i++) bytes[i >> 3] |= cells[i] << (7 - (i & 7));
  return toBase64(bytes);
}

/** The inverse of `pack`, `count` cells. */
export function unpackCells(text, count) {
  const bytes = fromBase64(text);
  const cells = new Uint8Array(count);
  for (let i = 0; i < count; i++) cells[i] = (bytes[i >> 3] >> (7 - (i & 7))) & 1;
  return cells;
}

/** The queries, from 0, that may see nothing. */
export function blindRows(cells, n) {
  return Array.from({ length: n }, (_, row) => row).filter((row) => !cells.subarray(row * n, (row + 1) * n).includes(1));
}

/** What a square says, in one sentence. Positions count from 1. */
export function sentence(data, cells, { row, column }) {
  const { queries, keys, words } = data;
  const [seen, all] = [counts(cells, data)[row * data.side + column], size(data, row * data.side + column)];
  if (data.squares.factor === 1) {
    return `Query '${queries[row]}' at ${row + 1} ${seen ? words.on : words.off} key '${keys[column]}' at ${column + 1}`;
  }
  const [asking, asked] = [place(data, row), place(data, column)];
  if (seen === all) return `Every query at ${asking} ${words.on} every key at ${asked}`;
  if (seen === 0) return `No query at ${asking} ${words.on} any key at ${asked}`;
  return `Queries at ${asking}, keys at ${asked}: ${words.on}, in ${seen} of ${all} cells`;
}

function place(data, i) {
  const [first, last] = ends(data, i);
  return last - first === 1 ? `${last}` : `${first + 1}–${last}`;
}

/** Which queries have no cell, in words; '' where none is. */
export function blindness({ queries, words }, rows) {
  if (!rows.length) return '';
  const name = (row) => `'${queries[row]}' at ${row + 1}`;
  const named = rows.slice(0, 4).map(name);
  const more = rows.length - named.length;
  const last = more ? `${more} more` : named.pop();
  const who = named.length ? `Queries ${named.join(', ')} and ${last}` : `Query ${last}`;
  return `⊘ ${who} ${rows.length > 1 ? words.empties : words.empty}.`;
}
