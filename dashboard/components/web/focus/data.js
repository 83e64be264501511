// What Python sent of a head, as typed arrays (see pack_focus in dashboard/components/focus.py), and what it says.

import { unpack } from '../kit/payload.js';

/**
 * The header, with `values` and `colours` of each view, and `mask`, `marks` and `whole` as arrays or null. Places are
 * those of the whole pattern, from 0; `rows` × `columns` cells of it, from `first` on, are in view.
 */
export function decode(message) {
  const { header, body } = unpack(message);
  const at = body.byteOffset;
  const { rows, columns } = header;
  const bytes = (offset, count) => (offset === undefined ? null : new Uint8Array(body.buffer, at + offset, count));
  const colours = (offset) => body.subarray(offset, offset + 768);
  const mask = bytes(header.mask, rows * columns);
  const views = header.views.map((view) => ({
    ...view,
    rows,
    columns,
    mask,
    values: new Float32Array(body.buffer, at + view.values, rows * columns),
    colours: colours(view.colours),
  }));
  const { whole } = header;
  return {
    ...header,
    views,
    mask,
    marks: bytes(header.marks, rows * columns),
    whole: whole && {
      ...whole,
      values: bytes(whole.values, whole.rows * whole.columns),
      mask: unpacked(bytes(whole.mask, Math.ceil((whole.rows * whole.columns) / 8)), whole.rows * whole.columns),
      colours: colours(whole.colours),
    },
  };
}

/** Bits as bytes, the first of a byte its highest. */
function unpacked(bits, count) {
  const cells = new Uint8Array(count);
  for (let i = 0; i < count; i++) cells[i] = (bits[i >> 3] >> (7 - (i & 7))) & 1;
  return cells;
}

/** The index of a place among the cells in view; -1 where it is not. */
export function indexOf({ first, rows, columns }, row, column) {
  const [down, across] = [row - first[0], column - first[1]];
  return down < 0 || down >= rows || across < 0 || across >= columns ? -1 : down * columns + across;
}

export const allowed = ({ mask }, index) => index >= 0 && (!mask || mask[index] === 1);

/** The key that a query in view looks at most, or the query that looks at a key most; null where there is none. */
export function strongest(data, { row, column }) {
  const [{ values }] = data.views;
  let best = null;
  const count = row === undefined ? data.rows : data.columns;
  for (let i = 0; i < count; i++) {
    const cell = row === undefined ? { row: data.first[0] + i, column } : { row, column: data.first[1] + i };
    const index = indexOf(data, cell.row, cell.column);
    if (!allowed(data, index) || Number.isNaN(values[index])) continue;
    if (!best || values[index] > best.value) best = { ...cell, value: values[index] };
  }
  return best;
}

const token = ({ factor }, name, place) => `'${name}' ${factor > 1 ? `from ${place * factor + 1} on` : `at ${place + 1}`}`;

/** What a token is called in words: query '3' at 9, or what is said there; a block of them by where it begins. */
export function asker(data, row) {
  return data.says ? `output '${data.says[row]}' at ${row + 1} (reading '${data.queries[row]}')` : looking(data, row);
}

export const looking = (data, row) => `query ${token(data, data.queries[row], row)}`;

export const asked = (data, column) => `key ${token(data, data.keys[column], column)}`;

/** What a cell says, in one sentence. Positions count from 1. */
export function sentence(data, row, column) {
  const index = indexOf(data, row, column);
  const who = `${asker(data, row)[0].toUpperCase()}${asker(data, row).slice(1)}`;
  if (index < 0) return `${who}, ${asked(data, column)}: outside the window; click in the whole to go there`;
  if (!allowed(data, index)) return `${who} may not see ${asked(data, column)}`;
  const say = ({ name, values, digits }) => `${name} ${number(values[index], digits)}`;
  return `${who} reads ${asked(data, column)}: ${data.views.map(say).join(' · ')}`;
}

export const number = (value, digits) => value.toFixed(digits).replace('-', '−');
