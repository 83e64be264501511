// The heatmaps of a plot, and a crosshair over them, made of a few divs: moving it costs no Plotly call.

import { placeOf } from '../matrix/data.js';
import { axisOf, heatmaps, pixelOf, span } from './plotly_private.js';

/**
 * Each heatmap that `gd` shows: its trace, its numbers [row][column], its axes and its edges on them, and which cells of
 * a pattern it shows (see placeOf), as the trace's `meta.cells` says.
 */
export function matrices(gd) {
  const found = [];
  for (const { trace, number, z, x, y } of heatmaps(gd)) {
    const [rows, columns] = [z.length, z[0]?.length ?? 0];
    if (x.edges.length !== columns + 1 || y.edges.length !== rows + 1) continue;
    const cells = { first: [0, 0], whole: [rows, columns], factor: 1, ...trace.meta?.cells };
    const edges = { x: x.edges, y: y.edges };
    found.push({ trace, number, z, rows, columns, x: axisOf(gd, x.name), y: axisOf(gd, y.name), edges, ...cells });
  }
  return found;
}

/** Where a matrix shows a row and a column, in pixels within its figure, and the frame of its axes. */
export function band({ x, y, edges }, row, column) {
  const [across, down] = [span(x), span(y)];
  return {
    frame: { left: across.start, top: down.start, width: across.length, height: down.length },
    column: cell(x, edges.x, column),
    row: cell(y, edges.y, row),
  };
}

function cell(axis, edges, index) {
  const ends = [pixelOf(axis, edges[index]), pixelOf(axis, edges[index + 1])];
  return { start: Math.max(0, Math.min(...ends)), end: Math.min(span(axis).length, Math.max(...ends)) };
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
