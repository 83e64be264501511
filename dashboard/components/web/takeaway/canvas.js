// A picture that is painted on canvases, as files: the same paint code on a sheet of vectors, or on one of pixels.

import { SvgContext } from './svg_context.js';

export const RATIO = 2; // device pixels a CSS pixel, whatever the window

/** The width of a text, as layouts ask for it. */
export function measuring(font) {
  const probe = document.createElement('canvas').getContext('2d');
  return (text, size) => {
    probe.font = `${size}px ${font}`;
    return probe.measureText(text).width;
  };
}

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
export function body(paint, theme) {
  return { markup: svg(paint, theme), scripts: [], theme };
}
