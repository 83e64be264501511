// The buttons over a plot for zooming and back; takeaway/menu.js has the other one.

/** Plotly's configuration; `reset` is what undoes the zoom. With `tools` dragging may pan as well as zoom. */
export function config(Plotly, reset, tools) {
  return {
    displaylogo: false,
    showTips: false,
    showSendToCloud: false,
    displayModeBar: 'hover',
    modeBarButtons: [...(tools ? [['zoom2d', 'pan2d']] : []), [{ name: 'reset-zoom', title: 'Reset zoom (Esc)', icon: Plotly.Icons.home, click: reset }]],
    doubleClick: false, // Plotly would go back to the ranges of the first figure; plot.js goes to those of the present one
    responsive: false, // Plotly would watch the window only; plot.js watches the plot itself
  };
}

/** The ranges a layout asks for, by axis, copied because Plotly writes the zoom into the layout it is given. */
export function askedRanges(layout) {
  const axes = Object.entries(layout).filter(([name]) => /^[xy]axis\d*$/.test(name));
  return Object.fromEntries(axes.map(([name, axis]) => [name, { range: axis.range?.slice(), autorange: axis.autorange }]));
}

/** Every axis back to what its figure asked for. */
export function resetZoom(Plotly, gd, asked) {
  const update = {};
  for (const [name, axis] of Object.entries(gd.layout)) {
    if (!/^[xy]axis\d*$/.test(name) || axis.fixedrange) continue;
    const { range, autorange } = asked[name] ?? {};
    if (range) update[`${name}.range`] = range.slice();
    else update[`${name}.autorange`] = autorange ?? true;
  }
  return Object.keys(update).length ? Plotly.relayout(gd, update) : Promise.resolve(gd);
}
