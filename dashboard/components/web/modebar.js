// The three buttons over a plot: zoom back, save as SVG, save as PNG.

// Words, not pictures: there is no picture of "SVG". plot.css gives them their size and colour.
const lettered = (letters) => ({
  svg: `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 28 16"><text x="14" y="12.5">${letters}</text></svg>`,
});

/** Plotly's configuration; `name` is what a saved file is called, `reset` what undoes the zoom. */
export function config(Plotly, name, reset) {
  const save = (format) => ({
    name: `save-${format}`,
    title: `Download ${format.toUpperCase()}`,
    icon: lettered(format.toUpperCase()),
    click: (gd) => download(Plotly, gd, format, name),
  });
  return {
    displaylogo: false,
    showTips: false,
    showSendToCloud: false,
    displayModeBar: 'hover',
    modeBarButtons: [
      [
        { name: 'reset-zoom', title: 'Reset zoom (Esc)', icon: Plotly.Icons.home, click: reset },
        save('svg'),
        save('png'),
      ],
    ],
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
  for (const [name, axis] of Object.entries(gd._fullLayout)) {
    if (!/^[xy]axis\d*$/.test(name) || axis.fixedrange) continue;
    const { range, autorange } = asked[name] ?? {};
    if (range) update[`${name}.range`] = range.slice();
    else update[`${name}.autorange`] = autorange ?? true;
  }
  return Object.keys(update).length ? Plotly.relayout(gd, update) : Promise.resolve(gd);
}

/** Save as seen, on the page's own ground: a transparent one would be unreadable where themes differ. */
function download(Plotly, gd, format, name) {
  const { width, height } = gd._fullLayout;
  const ground = getComputedStyle(gd).getPropertyValue('--st-background-color').trim() || '#ffffff';
  const picture = { data: gd.data, layout: { ...gd.layout, paper_bgcolor: ground }, config: { displayModeBar: false } };
  return Plotly.downloadImage(picture, { format, width, height, scale: format === 'png' ? 2 : 1, filename: name });
}
