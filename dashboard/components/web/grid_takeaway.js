// What the grid of heads gives away: its picture, painted anew at twice the size, and its patterns as Python sent them.

import { layOut } from './grid_layout.js';
import { mark, paint } from './grid_paint.js';
import { SvgContext } from './svg_context.js';
import { places } from './takeaway_series.js';

const RATIO = 2;

/** Paint the grid, `width` CSS pixels wide, on `over(width, height)`, a function that gives a context in device pixels. */
function picture(data, theme, focus, width, over) {
  const probe = document.createElement('canvas').getContext('2d');
  const measure = (text, size) => {
    probe.font = `${size}px ${theme.font}`;
    return probe.measureText(text).width;
  };
  const layout = layOut(data.panels, width, data.size, RATIO, measure);
  const ground = over(layout.width, layout.height);
  const overlay = over(layout.width, layout.height);
  paint(ground, data, layout, theme, RATIO);
  mark(overlay, data, layout, theme, RATIO, focus, null);
  return { ground, overlay, ...layout };
}

export function svg(data, theme, focus, width) {
  const made = picture(data, theme, focus, width, (wide, high) => new SvgContext(wide, high));
  return SvgContext.document([made.ground, made.overlay], theme.onPrimary, RATIO);
}

export async function png(data, theme, focus, width) {
  const over = (wide, high) => new OffscreenCanvas(wide, high).getContext('2d');
  const made = picture(data, theme, focus, width, over);
  const whole = over(made.width, made.height);
  whole.fillStyle = theme.onPrimary;
  whole.fillRect(0, 0, made.width, made.height);
  for (const { canvas } of [made.ground, made.overlay]) whole.drawImage(canvas, 0, 0);
  return (await whole.canvas.convertToBlob({ type: 'image/png' })).arrayBuffer();
}

/** A page with the picture in it. */
export function body(data, theme, focus, width) {
  const look = { ground: theme.onPrimary, ink: theme.text, link: 'inherit' };
  return { markup: svg(data, theme, focus, width), scripts: [], look };
}

/** One matrix a head, with its mask, [query, key]. Coarse patterns, sent as whole steps of 1/255, are shares here too. */
export function series(data) {
  return data.panels.map((panel) => {
    const { rows, columns, queries, keys, values, mask } = panel;
    const shares = values instanceof Float32Array ? values : Float32Array.from(values, (level) => level / 255);
    const extra = mask ? [{ name: 'mask', dtype: '|b1', data: mask }] : [];
    return {
      name: `${panel.group} head ${panel.name}`.trim(),
      dims: [
        { name: 'query', at: places(rows, 1), tokens: queries },
        { name: 'key', at: places(columns, 1), tokens: keys },
      ],
      values: { name: 'value', dtype: '<f4', data: shares },
      extra,
    };
  });
}
