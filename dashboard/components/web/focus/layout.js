// Where the pictures of a head stand. Pure geometry, in device pixels, so that cells have whole ones and stay crisp.

const GAP = 22; // between two pictures
const TITLE = 24; // above each, for its name and its scale
const LABEL = 14; // least room that a label needs along its axis
const LINE = 6; // rows of the arcs that stand closer than this have lines only where they have a name
const LABEL_ROOM = 52; // at most, for token labels
const ARCS = { least: 150, most: 280, names: 0.28 }; // of their room, each side's names take so much at most
const BETWEEN = 8; // between two lines of pictures
const EDGE = 4; // right of a picture that takes all the width
const LEAST = 210; // a matrix is not made smaller than this, but put on a line of its own

/**
 * `data` as data.js decodes it, `width` in CSS pixels, `measure(text, size)` a text's width in them. The result:
 * the size of the canvas and `boxes`: {kind: 'view' | 'arcs' | 'whole', view, x, y, width, height, step, ...}.
 */
export function layOut(data, width, ratio, measure) {
  const { wide, left, below } = labelRoom(data, measure);
  const others = data.views.length - 1;
  const px = (length) => Math.round(length * ratio);
  const boxes = [];
  const end = (box) => (box.y + box.height) / ratio + (box.kind === 'view' ? below : LABEL / 2);
  const right = (box) => (box.x + box.width) / ratio;

  const place = (kind, x, top, side, rows, columns, view) => {
    const step = wholePixels((side * ratio) / Math.max(rows, columns));
    const box = { kind, view, top: px(top), x: px(x + left), y: px(top + TITLE), step, rows, columns };
    box.width = Math.max(1, Math.round(columns * step));
    box.height = Math.max(1, Math.round(rows * step));
    boxes.push(box);
    return box;
  };

  let y = 0;
  if (data.whole) {
    const { rows, columns } = data.whole;
    y = end(place('whole', 0, 0, Math.min(data.height, width - left - EDGE), rows, columns)) + BETWEEN;
  }
  // All in one line where there is room, else the pattern and its arcs first, and the others below; in a narrow place
  // the arcs as well.
  const wanted = Math.max(ARCS.least, Math.min(ARCS.most, 0.3 * width)) + GAP;
  const stacked = width - wanted - left < LEAST;
  const arcs = data.arcs && !stacked ? wanted : 0;
  const share = (width - arcs - others * GAP) / (others + 1) - left;
  const inLine = others > 0 && !data.whole && share >= LEAST;
  const side = Math.max(120, Math.min(data.height, inLine ? share : width - arcs - left));
  const pattern = place('view', 0, y, side, data.rows, data.columns, 0);
  const start = right(pattern) + GAP;
  let last = pattern;
  if (data.arcs && stacked) {
    y = end(pattern) + BETWEEN;
    last = between({ ...pattern, top: px(y), y: px(y + TITLE) }, 0, wide, width, px);
    boxes.push(last);
  } else if (data.arcs) {
    const room = inLine ? arcs - GAP : Math.min(width - start, 1.6 * ARCS.most);
    boxes.push(between(pattern, start, wide, room, px));
  }
  if (inLine) {
    let x = start + arcs;
    for (let i = 1; i <= others; i++) x = right(place('view', x, y, side, data.rows, data.columns, i)) + GAP;
  } else {
    const perLine = Math.max(1, Math.min(others, Math.floor((width + GAP) / (LEAST + left + GAP))));
    const room = Math.min(data.height, (width - (perLine - 1) * GAP) / perLine - left);
    for (let i = 1; i <= others; i++) {
      const column = (i - 1) % perLine;
      if (column === 0) y = end(last) + BETWEEN;
      last = place('view', column * (left + room + GAP), y, room, data.rows, data.columns, i);
    }
  }
  for (const box of boxes) {
    box.every = Math.max(1, Math.ceil((LABEL * ratio) / box.step));
    box.everyKey = Math.max(1, Math.ceil((LABEL * ratio) / (box.keyStep ?? box.step)));
    box.crowded = box.step < LINE * ratio;
  }
  const bottom = Math.max(...boxes.map(end));
  return { width: Math.floor(width * ratio), height: Math.ceil(bottom * ratio), boxes };
}

/** The place of the arcs beside a pattern, row for row, in so much `room` from `start` on: names, lines, names. */
function between({ y, top, height, rows, columns }, start, wanted, room, px) {
  const wide = px(Math.min(wanted, ARCS.names * room));
  const x = px(start) + wide;
  return { kind: 'arcs', start: px(start), wide, x, y, top, width: px(room) - 2 * wide, height, rows, columns, step: height / rows, keyStep: height / columns };
}

/** Whole device pixels for a cell, where that costs less than a quarter of its size. */
function wholePixels(step) {
  const whole = Math.floor(step);
  return whole >= 1 && whole / step >= 0.75 ? whole : step;
}

function labelRoom({ queries, keys }, measure) {
  const widest = (labels) => [...new Set(labels)].reduce((most, label) => Math.max(most, measure(label, 12)), 0);
  const wide = Math.max(16, widest(queries), widest(keys)) + 14;
  const room = (labels) => Math.min(LABEL_ROOM, Math.max(16, widest(labels)) + 6);
  return { wide: Math.min(LABEL_ROOM + 8, wide), left: room(queries), below: room(keys) };
}

/**
 * What is under a point: {row, column} in the whole pattern, one of them undefined over the arcs' tokens, `kind` what
 * it is in; null where there is nothing.
 */
export function pick(data, { boxes }, x, y) {
  for (const box of boxes) {
    const margin = box.wide ?? 0; // the tokens beside the arcs
    const inside = x >= box.x - margin && x < box.x + box.width + margin;
    if (!inside || y < box.y || y >= box.y + box.height) continue;
    const row = Math.min(box.rows - 1, Math.floor((y - box.y) / box.step));
    const column = Math.min(box.columns - 1, Math.floor((box.kind === 'arcs' ? y - box.y : x - box.x) / (box.keyStep ?? box.step)));
    if (box.kind === 'whole') {
      const { factor } = data.whole;
      return { kind: 'whole', row: Math.min(data.queries.length - 1, row * factor), column: Math.min(data.keys.length - 1, column * factor) };
    }
    const [down, across] = data.first;
    if (box.kind === 'view') return { kind: 'view', row: row + down, column: column + across };
    return x < box.x + 0.6 * box.width ? { kind: 'arcs', row: row + down } : { kind: 'arcs', column: column + across };
  }
  return null;
}
