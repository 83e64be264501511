// Where the words of a passage stand: broken into lines as a text is, each line end shown as a sign of its own.

const SIZE = 18; // CSS pixels of the letters
const LINE = 31; // and of a line
const HEAD = 30; // above the first line: the scale, and room for arcs
const EDGE = 10;
const BLANK = 0.42; // the width of a blank, in letters' sizes: wide enough to be pointed at
const TAB = 4; // blanks
const MOST_EMPTY = 1; // so many empty lines in a row are drawn

/**
 * {width, height, size, boxes, lines}: a box is a piece of a word on one line, {index, line, x, y, width, height, text}.
 * A word that holds line ends has a box on each of its lines. All in device pixels.
 */
export function layOut({ tokens }, width, ratio, measure) {
  const size = SIZE * ratio;
  const line = LINE * ratio;
  const left = EDGE * ratio;
  const right = Math.max(left + 6 * size, (width - EDGE) * ratio);
  const wide = widths(measure, size);
  const boxes = [];
  let [row, x, empty] = [0, left, 0];
  const feed = () => {
    empty = x === left ? empty + 1 : 0;
    if (empty <= MOST_EMPTY) row++;
    x = left;
  };
  for (const piece of groups(tokens)) {
    const parts = piece.map((part) => ({ ...part, width: wide(part.text) }));
    const inked = parts.filter(({ text }) => text.trim()).reduce((sum, part) => sum + part.width, 0);
    if (x > left && x + inked > right) {
      row++;
      x = left;
      empty = 0;
    }
    for (const part of parts) {
      if (x > left && x + (part.text.trim() ? part.width : 0) > right) [row, x, empty] = [row + 1, left, 0]; // a word longer than a line
      if (part.text) boxes.push({ ...part, line: row, x, y: (HEAD + row * LINE) * ratio, height: line });
      x += part.width;
      if (part.ends) feed();
    }
  }
  return { width: Math.round(width * ratio), height: Math.round((HEAD + (row + 1) * LINE + 6) * ratio), size, boxes, head: HEAD * ratio, left, right };
}

/** The pieces of the words in groups that no line end may part: letters up to the next blank. */
function groups(tokens) {
  const made = [];
  let group = [];
  const close = () => {
    if (group.length) made.push(group);
    group = [];
  };
  tokens.forEach((token, index) => {
    const lines = token.split('\n');
    lines.forEach((text, i) => {
      const ends = i < lines.length - 1;
      if (/^\s/.test(text)) close();
      group.push({ index, text: `${text}${ends ? '↵' : ''}`, ends });
      if (ends || /\s$/.test(text)) close();
    });
  });
  close();
  return made;
}

/** The width of a text; blanks are wider than the font's own. */
function widths(measure, size) {
  const known = new Map();
  return (text) => {
    if (!known.has(text)) known.set(text, [...runs(text)].reduce((sum, run) => sum + (run.trim() ? measure(run, size) : blank(run) * size), 0));
    return known.get(text);
  };
}

/** A text cut into blanks and what is none. */
export const runs = (text) => text.match(/\s+|\S+/g) ?? [];

/** How wide blanks are, in letters' sizes. */
export const blank = (run) => BLANK * [...run].reduce((sum, sign) => sum + (sign === '\t' ? TAB : 1), 0);

/** The box at (x, y), or the nearest on its line within reach; null beside the text. */
export function pick({ boxes, size }, x, y) {
  let [best, least] = [null, size];
  for (const box of boxes) {
    if (y < box.y || y >= box.y + box.height) continue;
    const off = Math.max(box.x - x, x - box.x - box.width, 0);
    if (off < least) [best, least] = [box, off];
  }
  return best;
}

/** Where a word stands: the box of it with the most letters. */
export function boxOf({ boxes }, index) {
  let best = null;
  for (const box of boxes) {
    if (box.index === index && (!best || box.text.trim().length > best.text.trim().length)) best = box;
  }
  return best;
}

/** The word a line above or below this one, nearest to it. */
export function beside(layout, index, step) {
  const from = boxOf(layout, index);
  if (!from) return index;
  const middle = from.x + from.width / 2;
  const off = (box) => Math.abs(box.line - from.line) * 1e6 + Math.abs(box.x + box.width / 2 - middle);
  const there = layout.boxes.filter((box) => (box.line - from.line) * step > 0);
  return there.length ? there.reduce((best, box) => (off(box) < off(best) ? box : best)).index : index;
}
