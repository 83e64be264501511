// What HTML gives away: its picture, painted from where the browser has laid it out, itself, and the numbers behind it.

import { RATIO } from '../takeaway/canvas.js';
import { typed } from '../takeaway/npz.js';
import { fill, frame, hem, letters } from './paint.js';

export { png, svg } from '../takeaway/canvas.js';

const EDGE = 8; // CSS pixels around it

/** All of it, also what is scrolled out of sight. */
export const picture = (root) => (over) => {
  const parts = [...laidOut(root, 1, null)];
  const edge = (side, most) => Math[most](...parts.map(({ rect }) => rect[side]));
  const [left, top] = [edge('left', 'min') - EDGE, edge('top', 'min') - EDGE];
  const width = Math.ceil((edge('right', 'max') + EDGE - left) * RATIO);
  const height = Math.ceil((edge('bottom', 'max') + EDGE - top) * RATIO);
  const sheet = over(width, height);
  const placed = (rect) => ({
    x: (rect.left - left) * RATIO,
    y: (rect.top - top) * RATIO,
    width: (rect.right - rect.left) * RATIO,
    height: (rect.bottom - rect.top) * RATIO,
  });
  const paint = (parts, ...steps) => {
    for (const { rect, style, opacity, text } of parts) {
      sheet.globalAlpha = opacity;
      for (const step of steps) step(sheet, placed(rect), style, RATIO, text);
    }
  };
  paint(parts.filter(({ text }) => text === undefined), fill, frame);
  paint(parts.filter(({ text }) => text !== undefined), letters);
  paint(parts.filter(({ text }) => text === undefined), hem);
  return { sheets: [sheet], width, height };
};

/** A page with the HTML in it, which has its styles with it. */
export function body(root, theme) {
  return { markup: root.innerHTML, scripts: [], theme };
}

/** Its numbers, to the bit what Python sent. */
export function series({ header, body }) {
  const column = ({ offset, count, ...rest }) => (offset === undefined ? rest : { ...rest, data: typed(body, rest.dtype, offset, count) });
  return header.series.map(({ name, dims, values, extra }) => ({
    name,
    dims: dims.map((dim) => ({ ...dim, at: column(dim.at) })),
    values: column(values),
    extra: extra.map(column),
  }));
}

/** Every box and every line of text, those below first: {rect, style, opacity, text}, boxes without a text. */
function* laidOut(node, opacity, within) {
  for (const child of node.childNodes) {
    if (child.nodeType === Node.TEXT_NODE) {
      const style = getComputedStyle(node);
      for (const line of lines(child)) if (!within || inside(line.rect, within)) yield { ...line, style, opacity };
    } else if (child.nodeType === Node.ELEMENT_NODE) {
      const style = getComputedStyle(child);
      const share = opacity * style.opacity;
      if (style.display === 'none' || style.visibility === 'hidden' || share === 0) continue;
      for (const rect of child.getClientRects()) yield { rect, style, opacity: share };
      yield* laidOut(child, share, style.overflowX === 'hidden' ? child.getBoundingClientRect() : within);
    }
  }
}

/** The lines in which a text is set, without the spaces that are not. */
function* lines(node) {
  const range = document.createRange();
  let line = null;
  for (const { segment, index } of new Intl.Segmenter().segment(node.data)) {
    range.setStart(node, index);
    range.setEnd(node, index + segment.length);
    const box = range.getClientRects()[0];
    if (!box?.width) continue;
    if (line && Math.abs(line.rect.top - box.top) < box.height / 2) {
      line.text += segment;
      line.rect.right = box.right;
    } else {
      if (line) yield line;
      line = { text: segment, rect: { left: box.left, right: box.right, top: box.top, bottom: box.bottom } };
    }
  }
  if (line?.text.trim()) yield line;
}

/** Is enough of a line to be seen? What has no room on the screen has none in the picture. */
function inside({ left, right }, within) {
  return Math.min(right, within.right) - Math.max(left, within.left) > (right - left) / 3;
}
