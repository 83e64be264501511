// The private parts of Plotly.js that our scripts lean on, all of them. Plotly promises none of these names, and in 7.1 no
// public one does the same. After an upgrade tests/browser/house/test_private_parts.py says by its names what is gone.

/** An axis as it is drawn, by its name in the layout. Without it there is no crosshair, and no arc can be pointed at. */
export const axisOf = (gd, name) => gd._fullLayout[name];

/** Where an axis begins and how long it is, in pixels of its figure. */
export const span = (axis) => ({ start: axis._offset, length: axis._length });

/** How many pixels after its beginning an axis shows a value, and the other way round. */
export const pixelOf = (axis, value) => axis.c2p(value);
export const valueAt = (axis, pixel) => axis.p2c(pixel);

/**
 * The heatmaps on the screen: the trace as it is drawn, its number among the traces, its numbers z[row][column], the names
 * of its axes and the edges of its cells on them, one more than there are cells. Without them there is no crosshair.
 */
export function* heatmaps(gd) {
  for (const [first] of gd.calcdata ?? []) {
    const trace = first?.trace;
    if (trace?.type !== 'heatmap' || trace.visible !== true || !first.z) continue;
    const [x, y] = ['x', 'y'].map((letter) => ({ name: trace[`${letter}axis`].replace(letter, `${letter}axis`), edges: first[letter] }));
    yield { trace, number: trace.index, z: first.z, x, y };
  }
}

/**
 * The picture of a heatmap's cells, by its number among the traces: one pixel a cell, stretched, as Plotly draws even cells
 * without gaps. Without it a chosen head waits for Python.
 */
export function cellsOf(gd, number) {
  const heatmap = [...gd.querySelectorAll('.hm')].find((each) => each.__data__?.[0]?.trace?.index === number);
  return heatmap?.querySelector('image[style*=pixelated]') ?? null;
}

/** Where such a picture is read from, and to have it read from elsewhere: Plotly writes the older name of this attribute. */
const XLINK = 'http://www.w3.org/1999/xlink';
export const addressOf = (image) => image.getAttributeNS(XLINK, 'href');
export const readdress = (image, address) => image.setAttributeNS(XLINK, 'xlink:href', address);

/** The layer with the labels at the pointer. Without it the crosshair covers them. */
export const hoverLayer = (gd) => gd.querySelector('.hoverlayer')?.ownerSVGElement;

/** Plotly's style sheets, which stand in the document's head. Without them a figure in a shadow root lies in pieces. */
export const styleSheets = () => [...document.querySelectorAll('style[id^="plotly.js-style-"]')].map(({ sheet }) => sheet);

/** The pictures that a figure is made of. Without them a screen reader reads every label of every axis. */
export const pictures = (gd) => gd.querySelectorAll('.main-svg');

/** The labels of an axis' ticks. Without them labels touch. */
export const tickLabels = (gd, name) => gd.querySelectorAll(`.${name.replace('axis', '')}tick text`);

/**
 * Places of a trace's texts that hold none: of an empty text Plotly takes the node away but keeps its place, and a text that
 * comes later finds no node there and is not drawn. Without them Plotly makes places anew.
 */
export const emptied = (gd) => gd.querySelectorAll('.textpoint:not(:has(text))');

/** Does something belong to the buttons over a figure? plot.css moves them too, beside ours. */
export const isButton = (element) => Boolean(element.closest?.('.modebar'));
