// What the grid of heads gives away: its picture, painted anew for a wide sheet, and its patterns as Python sent them.

import { layOut } from './grid_layout.js';
import { mark, paint } from './grid_paint.js';
import { SvgContext } from './svg_context.js';
import { places } from './takeaway_series.js';

const RATIO = 2;
const WIDTH = 1100; // CSS pixels there are for it, whatever the window: the same grid gives the same picture
const EDGE = 8;

/** Paint the grid on two sheets of `over(width, height)`, which gives a context in device pixels: itself, and its focus. */
function picture(data, theme, focus, over) {
  const probe = document.createElement('canvas').getContext('2d');
  const measure = (text, size) => {
    probe.font = `${size}px ${theme.font}`;
    return probe.measureText(text).width;
  };
  const layout = layOut(data.panels, WIDTH, data.size, RATIO, measure);
  layout.width = Math.max(...layout.boxes.map(({ x, width }) => x + width)) + EDGE * RATIO;
  const ground = over(layout.width, layout.height);
  const overlay = over(layout.width, layout.height);
  paint(ground, data, layout, theme, RATIO);
  mark(overlay, data, layout, theme, RATIO, focus, null);
  return { ground, overlay, ...layout };
}

export function svg(data, theme, focus) {
  const made = picture(data, theme, focus, (wide, high) => new SvgContext(wide, high));
  return SvgContext.document([made.ground, made.overlay], theme.onPrimary, RATIO);
}

export async function png(data, theme, focus) {
  const over = (wide, high) => new OffscreenCanvas(wide, high).getContext('2d');
  const made = picture(data, theme, focus, over);
  const whole = over(made.width, made.height);
  whole.fillStyle = theme.onPrimary;
  whole.fillRect(0, 0, made.width, made.height);
  for (const { canvas } of [made.ground, made.overlay]) whole.drawImage(canvas, 0, 0);
  return (await whole.canvas.convertToBlob({ type: 'image/png' })).arrayBuffer();
}

/** A page with the picture in it. */
export function body(data, theme, focus) {
  const look = { ground: theme.onPrimary, ink: theme.text, link: 'inherit' };
  return { markup: svg(data, theme, focus), scripts: [], look };
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
