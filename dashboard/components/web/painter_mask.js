// A mask that is being painted: which cells a brush touches, and its text. Cells are bytes, row by row, 1 = may see.

export const BRUSHES = ['cell', 'row', 'column', 'diagonal', 'antidiagonal', 'box'];

/**
 * The cells that `brush` touches when it is drawn from the cell `from` to the cell `to`, each {row, column}; `mirrors`
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

/** The cells on the way from one to another: a quick hand leaves no gaps. */
function between(from, to) {
  const steps = Math.max(Math.abs(to.row - from.row), Math.abs(to.column - from.column), 1);
  return Array.from({ length: steps + 1 }, (_, i) => ({
    row: Math.round(from.row + ((to.row - from.row) * i) / steps),
    column: Math.round(from.column + ((to.column - from.column) * i) / steps),
  }));
}

/** The cells as `numpy.packbits` writes them, in base64: what Python is sent, and what the history keeps. */
export function pack(cells) {
  const bytes = new Uint8Array(Math.ceil(cells.length / 8));
  cells.forEach((cell, i) => (bytes[i >> 3] |= cell << (7 - (i & 7))));
  return btoa(String.fromCharCode(...bytes));
}

/** The inverse, `count` cells. */
export function unpackCells(text, count) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return Uint8Array.from({ length: count }, (_, i) => (bytes[i >> 3] >> (7 - (i & 7))) & 1);
}

/** The queries, from 0, that may see nothing. */
export function blindRows(cells, n) {
  return Array.from({ length: n }, (_, row) => row).filter((row) => !cells.subarray(row * n, (row + 1) * n).includes(1));
}

/** What a cell says, in one sentence. Positions count from 1. */
export function sentence({ queries, keys, n, words }, cells, { row, column }) {
  const may = cells[row * n + column] ? words.on : words.off;
  return `Query '${queries[row]}' at ${row + 1} ${may} key '${keys[column]}' at ${column + 1}`;
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
