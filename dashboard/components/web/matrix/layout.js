// Where everything of the grid stands. Pure geometry, in device pixels, so that cells have whole ones and stay crisp.

const SMALLEST = 36; // side of a thumbnail, in CSS pixels
const LABELLED_CELL = 8.5; // from this size of a cell its token can be written beside it
const LABEL_ROOM = 44; // at most, for token labels
const HEADING = 28;
const MARGIN = 4; // around everything: the focused panel's outline stands outside its thumbnail

/**
 * `size` is a thumbnail's longest side and `measure(text, size)` a text's width, in CSS pixels. The result: the size of the
 * canvas, one box per panel {x, y, width, height, step, top}, `step` being a cell's size and `top` where its title begins,
 * and the headings of the groups.
 */
export function layOut({ panels, size }, width, ratio, measure) {
  const across = Math.max(...panels.map((panel) => panel.column)) + 1;
  const dense = across > 8 || size < 60;
  const gap = dense ? 6 : 16;
  const room = labelRoom(panels, measure);
  const slot = (gutter) => Math.max(SMALLEST, Math.min(size, (width - 2 * MARGIN - gutter - (across - 1) * gap) / across));
  const cell = (panel, side) => side / Math.max(panel.rows, panel.columns);
  const labelled = size >= 60 && panels.every((panel) => cell(panel, slot(room.queries)) >= LABELLED_CELL);
  const gutter = labelled ? room : { queries: 0, keys: 0 };
  const side = slot(gutter.queries);

  const px = (length) => Math.round(length * ratio);
  const titleSize = side < 60 ? 10 : 13;
  const titleHeight = titleSize + 6;
  const pitch = px(side + gap);
  const boxes = [];
  const headings = [];
  let y = px(MARGIN);
  for (const [group, members] of groupBy(panels, (panel) => panel.group)) {
    if (group) {
      headings.push({ text: group, x: px(MARGIN), y: y + px(HEADING) / 2 });
      y += px(HEADING);
    }
    for (const [, row] of [...groupBy(members, (panel) => panel.row)].sort(([a], [b]) => a - b)) {
      let tallest = 0;
      for (const panel of row) {
        const step = wholePixels(cell(panel, side) * ratio);
        const box = {
          x: px(MARGIN + gutter.queries) + panel.column * pitch,
          y: y + px(titleHeight),
          width: Math.max(1, Math.round(panel.columns * step)),
          height: Math.max(1, Math.round(panel.rows * step)),
          step,
          top: y,
        };
        boxes[panel.index] = box;
        tallest = Math.max(tallest, box.height);
      }
      y += px(titleHeight) + tallest + px(gutter.keys) + px(dense ? 6 : 12);
    }
  }
  const ends = [...boxes.map((box) => box.x + box.width), ...headings.map(({ text, x }) => x + px(measure(text, 14)))];
  return { width: Math.max(...ends) + px(MARGIN), height: y, boxes, headings, labelled, titleSize, titleHeight };
}

/** Whole device pixels for a cell, where that costs less than a quarter of its size. */
function wholePixels(step) {
  const whole = Math.floor(step);
  return whole >= 1 && whole / step >= 0.75 ? whole : step;
}

function labelRoom(panels, measure) {
  const widest = (labels) => Math.max(0, ...labels.map((label) => measure(label, 11)));
  const queries = Math.max(...[...new Set(panels.map((panel) => panel.queries))].map(widest));
  const keys = Math.max(...[...new Set(panels.map((panel) => panel.keys))].map(widest));
  return { queries: Math.min(LABEL_ROOM, queries) + 5, keys: Math.min(LABEL_ROOM, Math.max(keys, 12)) + 4 };
}

function groupBy(items, name) {
  const groups = new Map();
  for (const item of items) groups.set(name(item), [...(groups.get(name(item)) ?? []), item]);
  return groups;
}

/** What is under a point: {panel, row, column}, the last two null over its title; null where there is no panel. */
export function pick(panels, { boxes }, x, y) {
  for (const panel of panels) {
    const box = boxes[panel.index];
    if (x < box.x || x >= box.x + box.width || y < box.top || y >= box.y + box.height) continue;
    if (y < box.y) return { panel: panel.index, row: null, column: null };
    const row = Math.min(panel.rows - 1, Math.floor((y - box.y) / box.step));
    const column = Math.min(panel.columns - 1, Math.floor((x - box.x) / box.step));
    return { panel: panel.index, row, column };
  }
  return null;
}
