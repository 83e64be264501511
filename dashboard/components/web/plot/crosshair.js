// A crosshair over the heatmaps of a plot, made of a few divs: moving it costs no Plotly call.

/** Where each heatmap of `gd` that has the shape of `cell` shows its row and column, in pixels within `gd`. */
function bands(gd, cell) {
  const found = [];
  for (const [first] of gd.calcdata ?? []) {
    const trace = first?.trace;
    if (trace?.type !== 'heatmap' || trace.visible !== true || !first.z) continue;
    const rows = first.z.length;
    const columns = first.z[0]?.length ?? 0;
    // Plotly holds the edges of the cells, one more than there are cells.
    if (cell.rows !== rows || cell.columns !== columns) continue;
    if (first.x.length !== columns + 1 || first.y.length !== rows + 1) continue;
    const x = gd._fullLayout[trace.xaxis.replace('x', 'xaxis')];
    const y = gd._fullLayout[trace.yaxis.replace('y', 'yaxis')];
    found.push({
      frame: { left: x._offset, top: y._offset, width: x._length, height: y._length },
      column: span(x, first.x, cell.column),
      row: span(y, first.y, cell.row),
    });
  }
  return found;
}

function span(axis, edges, index) {
  const ends = [axis.c2p(edges[index]), axis.c2p(edges[index + 1])];
  return { start: Math.max(0, Math.min(...ends)), end: Math.min(axis._length, Math.max(...ends)) };
}

export class Crosshair {
  constructor(layer) {
    this.layer = layer;
  }

  /** Show `cell` {row, column, rows, columns} on every heatmap of that shape; null shows nothing. */
  show(gd, cell) {
    const places = cell ? bands(gd, cell) : [];
    while (this.layer.childElementCount < 2 * places.length) this.layer.append(document.createElement('div'));
    [...this.layer.children].forEach((line, i) => {
      const place = places[i >> 1];
      const across = i % 2 === 0;
      const band = place && (across ? place.row : place.column);
      line.hidden = !band || band.end <= band.start;
      if (line.hidden) return;
      const { left, top, width, height } = place.frame;
      const size = band.end - band.start;
      const box = across ? [left, top + band.start, width, size] : [left + band.start, top, size, height];
      ['left', 'top', 'width', 'height'].forEach((side, k) => (line.style[side] = `${box[k]}px`));
    });
  }
}
