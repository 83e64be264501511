// What a plot gives away: Plotly's own pictures, and the numbers as Python sent them.

import { readTheme } from '../kit/theme.js';
import { decoded } from '../takeaway/npz.js';
import { json } from '../takeaway/page.js';
import { places } from '../takeaway/series.js';
import { plotlySource } from './plotly_loader.js';

/** As seen, on the page's own ground: a transparent one would be unreadable where themes differ. */
async function picture(gd, format) {
  const { clientWidth: width, clientHeight: height } = gd;
  const scene = { data: gd.data, layout: { ...gd.layout, paper_bgcolor: readTheme(gd).background }, config: { displayModeBar: false } };
  const address = await window.Plotly.toImage(scene, { format, width, height, scale: format === 'png' ? 2 : 1 });
  return fetch(address);
}

export const svg = async (gd) => (await picture(gd, 'svg')).text();
export const png = async (gd) => (await picture(gd, 'png')).arrayBuffer();

/** A page with the figure alive in it: plotly.js and all. */
export async function body(gd, figure, version) {
  const theme = readTheme(gd);
  const { width: _, ...layout } = figure.layout;
  // Panels that stand at pixels keep them; anything else is as wide as the page.
  const size = layout.meta?.panels ? { width: gd.clientWidth } : { autosize: true };
  const alive = { data: figure.data, layout: { ...layout, paper_bgcolor: theme.background, ...size } };
  const draw = `Plotly.newPlot('figure', ${json(alive.data)}, ${json(alive.layout)}, {responsive: true, displaylogo: false, showSendToCloud: false});`;
  return {
    markup: `<div id="figure" style="height: ${gd.clientHeight}px"></div>`,
    scripts: [await plotlySource(version), draw],
    theme,
  };
}

/**
 * The numbers of a figure. Left out is what only decorates: a trace that answers no pointer (hoverinfo "skip"), unless
 * its `meta` says {numbers: true}; and one whose `meta` says {numbers: false}. A heatmap with `meta` {forbidden: true}
 * is the mask of the one before it; one with {numbers: "customdata"} is drawn in shares of what stands there. `layout.meta.tokens` {x, y} are the labels of whole axes, for ticks may leave out some: their
 * places are counted from 1, as on the screen. `layout.meta.places` {x, y} are numbers in place of those that are drawn.
 */
export function series({ data, layout }) {
  const found = [];
  for (const trace of data) {
    const last = found.at(-1);
    if (trace.meta?.forbidden) {
      if (last) last.extra.push({ name: 'mask', dtype: '|b1', data: Uint8Array.from(flat(trace.z).data, Number.isNaN) });
    } else if (trace.meta?.numbers ?? trace.hoverinfo !== 'skip') {
      found.push(trace.type === 'heatmap' ? matrix(trace, layout) : curve(trace, layout));
    }
  }
  const names = new Set();
  for (const each of found) {
    const plain = each.name;
    for (let i = 2; names.has(each.name); i++) each.name = `${plain}_${i}`;
    names.add(each.name);
  }
  return found;
}

function matrix(trace, layout) {
  const z = flat(trace[trace.meta?.numbers] ?? trace.z);
  const [rows, columns] = z.shape;
  const vertical = dimension(layout, 'y', trace.y, trace.y0, trace.dy, rows);
  const horizontal = dimension(layout, 'x', trace.x, trace.x0, trace.dx, columns);
  if (horizontal.name === vertical.name) horizontal.name += '_2';
  const values = { name: 'value', dtype: z.dtype, data: z.data };
  return { name: trace.name ?? 'values', dims: [vertical, horizontal], values, extra: [] };
}

function curve(trace, layout) {
  const y = flat(trace.y);
  const count = y.data.length;
  const extra = [];
  const { error_y: error } = trace;
  if (error?.array && error.visible !== false) {
    const bound = (array, sign) => Float64Array.from(flat(array).data, (width, i) => y.data[i] + sign * width);
    extra.push({ name: 'low', dtype: '<f8', data: bound(error.arrayminus ?? error.array, -1) });
    extra.push({ name: 'high', dtype: '<f8', data: bound(error.array, 1) });
  }
  const axis = dimension(layout, 'x', trace.x, trace.x0, trace.dx, count);
  return { name: trace.name ?? 'curve', dims: [axis], values: { name: measured(layout), dtype: y.dtype, data: y.data }, extra };
}

const measured = (layout) => column(layout.yaxis?.title?.text) || 'value';

/** An axis of a trace: what it is called, its places and their tokens. */
function dimension(layout, letter, at, first, step = 1, count) {
  const axis = layout[`${letter}axis`];
  const named = (kind) => (layout.meta?.[kind]?.[letter]?.length === count ? layout.meta[kind][letter] : null);
  const found = at === undefined ? places(count, first ?? 0, step) : flat(named('places') ?? at);
  const tokens = found.dtype === '<U' ? found.data : named('tokens');
  return { name: column(axis?.title?.text) || letter, at: tokens ? places(count, first ?? 1, step) : found, tokens };
}

/** An axis' title as a column's name: "query: who looks" is query, "second half right" second_half_right. */
const column = (title) => (title ?? '').split(/[:(]/)[0].replace(/[^A-Za-z0-9]+/g, '_').replace(/^_|_$/g, '');

const DTYPES = { f4: '<f4', f8: '<f8', i1: '|i1', u1: '|u1', i2: '<i2', u2: '<u2', i4: '<i4', u4: '<u4', b: '|b1' };

/** Plotly's arrays, {dtype, bdata, shape} or lists, as {dtype, shape, data}: to the bit what Python sent. */
function flat(value) {
  if (value?.bdata !== undefined) {
    const dtype = DTYPES[value.dtype];
    const data = decoded(value.bdata, dtype);
    return { dtype, data, shape: value.shape ? String(value.shape).split(',').map(Number) : [data.length] };
  }
  const list = Array.from(value ?? []);
  const shape = Array.isArray(list[0]) ? [list.length, list[0].length] : [list.length];
  const entries = list.flat();
  if (entries.some((entry) => typeof entry === 'string')) return { dtype: '<U', shape, data: entries.map(String) };
  return { dtype: '<f8', shape, data: Float64Array.from(entries, (entry) => (entry === null ? NaN : Number(entry))) };
}
