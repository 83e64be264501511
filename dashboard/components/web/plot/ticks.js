// Of the labels of an axis as many as do not touch. How much room they have only the browser knows, so Python names all.

import { named } from '../matrix/paint.js';
import { tickLabels } from './plotly_private.js';

const GAPS = [1, 3]; // CSS pixels to be left free at either end of a letter, and of a word
const LEADING = 0.15; // of a line's height, above and below: no letter reaches there,
const [EVEN, MORE] = [/^[\dA-Z–.+−-]*$/, 0.26]; // and of digits and capitals no part so far

/** The axes whose labels stand at places of their own, [name, axis] each. */
const labelled = (layout) =>
  Object.entries(layout).filter(
    ([name, axis]) => /^[xy]axis\d*$/.test(name) && axis.tickmode === 'array' && Array.isArray(axis.tickvals) && axis.ticktext?.length
  );

/** What the room for labels depends on: their words, and the size of the figure; '' where none are named. */
export function occasion(layout, width, height) {
  const axes = labelled(layout).map(([name, { ticktext, tickangle }]) => [name, ticktext, tickangle]);
  return axes.length ? JSON.stringify([width, height, axes]) : '';
}

/** A copy of the layout in which labels are written so many places apart at least, `{xaxis: 2}`; of an axis without a number all. */
export function thinned(layout, every = {}) {
  const axes = labelled(layout).map(([name, axis]) => [name, { ...axis, ...kept(axis, every[name] ?? 1) }]);
  return { ...layout, ...Object.fromEntries(axes) };
}

/** The labels that go with `thinned`, as Plotly.relayout takes them. */
export function update(layout, every) {
  const chosen = labelled(layout).filter(([name]) => every[name] > 1);
  return Object.fromEntries(
    chosen.flatMap(([name, axis]) => Object.entries(kept(axis, every[name])).map(([part, value]) => [`${name}.${part}`, value]))
  );
}

function kept({ tickvals, ticktext }, every) {
  const at = places(ticktext, every);
  return { tickvals: at.map((i) => tickvals[i]), ticktext: at.map((i) => ticktext[i]) };
}

const places = (labels, every) => named(labels, 0, labels.length, every);

/** How many places the labels of a drawn figure's axes must lie apart, where that is more than one: `{xaxis: 2}`. */
export function crowded(gd, layout) {
  const found = {};
  for (const [name, axis] of labelled(layout)) {
    const turned = Math.abs(axis.tickangle ?? 0) === 90;
    const boxes = Array.from(tickLabels(gd, name), (label) => core(label, turned));
    if (boxes.length !== axis.ticktext.length) continue; // zoomed in: there is room
    const rising = axis.range ? axis.range[0] < axis.range[1] : axis.autorange !== 'reversed';
    const across = name[0] === 'x';
    const way = across === rising ? 1 : -1; // on the screen; upwards is down to a screen
    boxes.sort(across ? (one, other) => way * (one.left + one.right - other.left - other.right) : (one, other) => way * (one.top + one.bottom - other.top - other.bottom));
    let every = 1;
    while (every < boxes.length && anyTouch(places(axis.ticktext, every).map((i) => boxes[i]))) every++;
    if (every > 1) found[name] = every;
  }
  return found;
}

/** Where a label's letters stand, and what is to be left free around them. */
function core(label, turned) {
  const { left, right, top, bottom } = label.getBoundingClientRect();
  const leading = EVEN.test(label.textContent) ? MORE : LEADING;
  const gap = GAPS[Number(label.textContent.length > 1)];
  const [across, down] = turned ? [-leading * (right - left), gap] : [gap, -leading * (bottom - top)];
  return { left: left - across, right: right + across, top: top - down, bottom: bottom + down };
}

/** Do two labels touch? Those in two lines by turns have the one after the next in their own. */
const anyTouch = (boxes) => boxes.some((box, i) => boxes.slice(i + 1, i + 3).some((other) => touch(box, other)));
const touch = (one, other) =>
  one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom;
