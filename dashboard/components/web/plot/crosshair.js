// The heatmaps of a plot, and a crosshair over them, made of a few divs: moving it costs no Plotly call.

import { placeOf } from '../matrix/data.js';

/**
 * Each heatmap that `gd` shows: its trace, its numbers [row][column], its axes and its edges on them, and which cells of
 * a pattern it shows (see placeOf), as the trace's `meta.cells` says.
 */
export function matrices(gd) {
  const found = [];
  for (const [first] of gd.calcdata ?? []) {
    const trace = first?.trace;
    if (trace?.type !== 'heatmap' || trace.visible !== true || !first.z) continue;
    const [rows, columns] = [first.z.length, first.z[0]?.length ?? 0];
    // Plotly holds the edges of the cells, one more than there are cells.
    if (first.x.length !== columns + 1 || first.y.length !== rows + 1) continue;
    const [x, y] = [trace.xaxis.replace('x', 'xaxis'), trace.yaxis.replace('y', 'yaxis')].map((name) => gd._fullLayout[name]);
    const cells = { first: [0, 0], whole: [rows, columns], factor: 1, ...trace.meta?.cells };
    found.push({ trace, z: first.z, rows, columns, x, y, edges: first, ...cells });
  }
  return found;
}

/** Where a matrix shows a row and a column, in pixels within its figure, and the frame of its axes. */
export function band({ x, y, edges }, row, column) {
  return {
    frame: { left: x._offset, top: y._offset, width: x._length, height: y._length },
    column: span(x, edges.x, column),
    row: span(y, edges.y, row),
  };
}

function span(axis, edges, index) {
  const ends = [axis.c2p(edges[index]), axis.c2p(edges[index + 1])];
  return { start: Math.max(0, Math.min(...ends)), end: Math.min(axis._length, Math.max(...ends)) };
}

export class Crosshair {
  constructor(layer) {
    this.layer = layer;
  }

  /** Show `cell` {row, column, rows, columns} on every heatmap that holds it; null shows nothing. */
  show(gd, cell) {
    const places = [];
    for (const matrix of cell ? matrices(gd) : []) {
      const at = placeOf(matrix, cell);
      if (at) places.push(band(matrix, at.row, at.column));
    }
    while (this.layer.childElementCount < 2 * places.length) this.layer.append(document.createElement('div'));
    [...this.layer.children].forEach((line, i) => {
      const place = places[i >> 1];
      const across = i % 2 === 0;
      const along = place && (across ? place.row : place.column);
      line.hidden = !along || along.end <= along.start;
      if (line.hidden) return;
      const { left, top, width, height } = place.frame;
      const size = along.end - along.start;
      const box = across ? [left, top + along.start, width, size] : [left + along.start, top, size, height];
      ['left', 'top', 'width', 'height'].forEach((side, k) => (line.style[side] = `${box[k]}px`));
    });
  }
}
