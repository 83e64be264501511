// A picture that is painted on canvases, as files: the same paint code on a sheet of vectors, or on one of pixels.

import { measuring } from '../kit/sizes.js';
import { SvgContext } from './svg_context.js';

export const RATIO = 2; // device pixels a CSS pixel, whatever the window

/**
 * A picture drawn anew (see canvas/canvases.js for `layOut`, `paint` and `mark`) on paper `width` CSS pixels wide: whatever
 * the window, the same data give the same file. `state` is what is chosen, or painted.
 */
export const onPaper = (width, { layOut, paint, mark }) => (data, theme, state) => (over) => {
  const layout = layOut(data, width, RATIO, measuring(theme.font));
  const sheets = [over(layout.width, layout.height), over(layout.width, layout.height)];
  paint(sheets[0], data, layout, theme, RATIO, state);
  mark?.(sheets[1], data, layout, theme, RATIO, null, state);
  return { sheets, width: layout.width, height: layout.height };
};

/**
 * `paint(over)` paints a picture on two sheets of `over(width, height)`, contexts in device pixels, and returns them, the
 * lower one first, with the picture's `width` and `height`.
 */
export function svg(paint, theme) {
  const { sheets } = paint((wide, high) => new SvgContext(wide, high));
  return SvgContext.document(sheets, theme.background, RATIO);
}

export async function png(paint, theme) {
  const over = (wide, high) => new OffscreenCanvas(wide, high).getContext('2d');
  const { sheets, width, height } = paint(over);
  const whole = over(width, height);
  whole.fillStyle = theme.background;
  whole.fillRect(0, 0, width, height);
  for (const { canvas } of sheets) whole.drawImage(canvas, 0, 0);
  return (await whole.canvas.convertToBlob({ type: 'image/png' })).arrayBuffer();
}

/** A page with the picture in it. */
export const body = (paint, theme) => ({ markup: svg(paint, theme), scripts: [], theme });
