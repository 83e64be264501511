// What Python sent, as typed arrays (see pack_panels in dashboard/components/head_grid.py).

import { unpack } from '../kit/payload.js';

const LETTERS = 12; // of a token in a sentence, at most

/** The header, with each panel's `values` (float32 or uint8), `mask` (uint8 or null), `queries` and `keys` filled in. */
export function decode(message) {
  const { header, body } = unpack(message);
  const at = body.byteOffset;
  const panels = header.panels.map((record, index) => {
    const cells = record.rows * record.columns;
    return {
      ...record,
      index,
      values: header.exact
        ? new Float32Array(body.buffer, at + record.pattern, cells)
        : new Uint8Array(body.buffer, at + record.pattern, cells),
      mask: record.mask === undefined ? null : new Uint8Array(body.buffer, at + record.mask, cells),
      queries: header.labels[record.queries],
      keys: header.labels[record.keys],
    };
  });
  return { ...header, panels, colours: body.subarray(header.colours, header.colours + 768) };
}

export const FORBIDDEN = 256;
export const MISSING = 257; // not a number: a model gone wrong must still show

/**
 * Each cell's place on the scale of 256 colours from 0 to 1, or FORBIDDEN, or MISSING. With `byRow` each row has a scale
 * of its own, from 0 to its greatest value.
 */
export function levels({ values, mask, columns }, byRow = false) {
  const result = new Uint16Array(values.length);
  let scale = values instanceof Float32Array ? 255 : 1;
  for (let i = 0; i < values.length; i++) {
    if (byRow && i % columns === 0) {
      const greatest = values.subarray(i, i + columns).reduce((most, value) => (value > most ? value : most), 0);
      scale = greatest > 0 ? 255 / greatest : 0;
    }
    const value = values[i];
    if (mask && !mask[i]) result[i] = FORBIDDEN;
    else if (Number.isNaN(value)) result[i] = MISSING;
    else result[i] = Math.max(0, Math.min(255, Math.round(value * scale)));
  }
  return result;
}

/**
 * Does a head of a film (see film/reel.js) end as a panel shows it: the same tokens, the same cells forbidden, and the same
 * numbers, as near as a rounded level tells?
 */
export function endsAs({ name, rows, columns, queries, keys, mask, last }, panel) {
  if (name !== panel.name || rows !== panel.rows || columns !== panel.columns) return false;
  if (!equal(queries, panel.queries) || !equal(keys, panel.keys)) return false;
  const own = levels(panel);
  return levels({ values: last, mask, columns }).every(
    (level, i) => (level === FORBIDDEN) === (own[i] === FORBIDDEN) && Math.abs(level - own[i]) <= 1
  );
}

export const equal = (one, other) => one.length === other.length && one.every((each, i) => each === other[i]);

// A panel has `rows` × `columns` cells, each a block of `factor` × `factor` of a pattern of `whole` [rows, columns], from
// `first` [row, column] on.

/** Which cell of a panel holds `cell` {row, column, rows, columns} of the whole pattern; undefined if it has none. */
export function placeOf({ rows, columns, factor = 1, whole = [rows, columns], first = [0, 0] }, cell) {
  if (cell.rows !== whole[0] || cell.columns !== whole[1]) return undefined;
  const [row, column] = [cell.row - first[0], cell.column - first[1]].map((place) => Math.floor(place / factor));
  return row >= 0 && row < rows && column >= 0 && column < columns ? { row, column } : undefined;
}

/** The inverse: the first cell of the whole pattern that stands at (row, column) of a panel. */
export function cellAt({ rows, columns, factor = 1, whole = [rows, columns], first = [0, 0] }, row, column) {
  return { row: first[0] + row * factor, column: first[1] + column * factor, rows: whole[0], columns: whole[1] };
}

/** What a cell says, in one sentence. Positions count from 1. */
export function sentence(panel, row, column) {
  if (panel.factor > 1) return blockSentence(panel, row, column);
  const who = `${called(panel)}: query '${short(panel.queries[row])}' at ${row + 1}`;
  const whom = `key '${short(panel.keys[column])}' at ${column + 1}`;
  const i = row * panel.columns + column;
  if (panel.mask && !panel.mask[i]) return `${who} may not see ${whom}`;
  const exact = panel.values instanceof Float32Array;
  const value = exact ? panel.values[i].toFixed(2) : `≈ ${(panel.values[i] / 255).toFixed(2)}`;
  return `${who} reads ${whom}: ${value}`;
}

/** What a sentence calls a panel: by its head, where nothing else is said. */
export const called = (panel) => panel.called ?? `Head ${panel.name}`;

/** A token in few letters, so that the number behind it is never what is cut. */
const short = (token) => {
  const letters = [...token];
  return letters.length > LETTERS ? `${letters.slice(0, LETTERS - 3).join('')}…${letters.slice(-2).join('')}` : token;
};

/** The same of a panel that is downsampled: a cell is the strongest of a block. */
function blockSentence(panel, row, column) {
  const i = row * panel.columns + column;
  const [queries, keys] = [span(row, panel.factor, panel.whole[0]), span(column, panel.factor, panel.whole[1])];
  if (panel.mask && !panel.mask[i]) return `${called(panel)}: queries ${queries} may not see keys ${keys}`;
  const value = panel.values instanceof Float32Array ? panel.values[i] : panel.values[i] / 255;
  return `${called(panel)}: queries ${queries} read keys ${keys}, at most ≈ ${value.toFixed(2)} (downsampled ${panel.factor}×)`;
}

const span = (block, factor, whole) => `${block * factor + 1}–${Math.min(whole, (block + 1) * factor)}`;

/** The panel one step (across, down) from `panel`: along its group, then into the next one. */
export function neighbour(panels, panel, across, down) {
  const peers = panels.filter((other) => other.group === panel.group);
  if (across) {
    const row = peers.filter((other) => other.row === panel.row && Math.sign(other.column - panel.column) === across);
    return nearest(row, (other) => Math.abs(other.column - panel.column)) ?? panel;
  }
  const distance = (other) => Math.abs(other.row - panel.row) * 1e4 + Math.abs(other.column - panel.column);
  const beyond = nearest(peers.filter((other) => Math.sign(other.row - panel.row) === down), distance);
  if (beyond) return beyond;
  const groups = [...new Set(panels.map((other) => other.group))];
  const group = groups[groups.indexOf(panel.group) + down];
  // Entering a group from above its first row is nearest, from below its last.
  const entry = (other) => down * other.row * 1e4 + Math.abs(other.column - panel.column);
  return nearest(panels.filter((other) => other.group === group), entry) ?? panel;
}

function nearest(panels, distance) {
  return panels.reduce((best, panel) => (!best || distance(panel) < distance(best) ? panel : best), null);
}
