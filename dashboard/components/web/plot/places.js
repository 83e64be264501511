// Where the panels of a figure stand. Python says it in pixels, for several widths: `layout.meta.panels`, the best
// first, each {least, height, axes: {name: [from, to]}, bars: {name: [x, y]}}; what counts from the right edge is not
// positive. What share of the figure that is only the browser knows.

/** The place that fits into a width, or the last; undefined where the figure has none. */
export function placeFor(layout, width) {
  const { panels } = layout.meta ?? {};
  return panels?.find(({ least }) => least <= width) ?? panels?.at(-1);
}

/** The layout with its panels where they stand in a figure that is so wide. */
export function placed(layout, width) {
  const place = placeFor(layout, width);
  if (!place) return layout;
  const { height, axes, bars } = place;
  const room = Math.max(width, place.least); // where none fits, it shrinks
  const across = (x) => x / room;
  const down = (y) => 1 - y / height;
  const made = { ...layout, height };
  for (const [name, [from, to]] of Object.entries(axes)) {
    const domain = name.startsWith('x') ? [across(from), across(to > 0 ? to : room + to)] : [down(to), down(from)];
    made[name] = { ...layout[name], domain };
  }
  for (const [name, [x, y]] of Object.entries(bars)) {
    made[name] = { ...layout[name], colorbar: { ...layout[name].colorbar, x: across(x), y: down(y) } };
  }
  return made;
}
