// The three buttons over a plot: zoom back, save as SVG, save as PNG.

const lettered = (letters) => ({
  svg: `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 30 20"><text x="15" y="15" text-anchor="middle"
    font-family="sans-serif" font-size="13" font-weight="600">${letters}</text></svg>`,
});

/** Plotly's configuration; `name` is what a saved file is called. */
export function config(Plotly, name) {
  const save = (format) => ({
    name: `save-${format}`,
    title: `Download ${format.toUpperCase()}`,
    icon: lettered(format.toUpperCase()),
    click: (gd) => download(Plotly, gd, format, name),
  });
  const reset = { name: 'reset-zoom', title: 'Reset zoom (Esc)', icon: Plotly.Icons.home, click: (gd) => resetZoom(Plotly, gd) };
  return {
    displaylogo: false,
    showSendToCloud: false,
    displayModeBar: 'hover',
    modeBarButtons: [[reset, save('svg'), save('png')]],
    responsive: false, // it would watch the window only; plot.js watches the plot itself
  };
}

/** Every axis back to the range its figure asks for. */
export function resetZoom(Plotly, gd) {
  const update = {};
  for (const [name, axis] of Object.entries(gd._fullLayout)) {
    if (!/^[xy]axis\d*$/.test(name) || axis.fixedrange) continue;
    // Plotly remembers the first range of an axis that was not left to itself, and nothing of one that was.
    if (axis._rangeInitial0 === undefined || axis._rangeInitial1 === undefined) {
      update[`${name}.autorange`] = axis._autorangeInitial ?? true;
    } else {
      update[`${name}.range`] = [axis._rangeInitial0, axis._rangeInitial1];
    }
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
