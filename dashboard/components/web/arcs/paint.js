// Draws a question and its answer: `paint` the tokens, `mark` the arcs and what the pointer is on.

import { along, arc } from './layout.js';

export const FAINT = 0.03; // weaker arcs of a pointed answer are not drawn
const SHOWN = 0.15; // at rest, of each answer's strongest
const MARKS = { right: '✓', wrong: '✕', open: '·' };
const PALE = 0.4; // an answer to what was asked before

/** `state` is {written, pale, caret}: how many answers are there, whether they are of another question, what is typed. */
export function paint(context, data, layout, theme, ratio, state = {}) {
  context.clearRect(0, 0, layout.width, layout.height);
  context.textAlign = 'center';
  context.textBaseline = 'middle';
  for (const box of layout.boxes) token(context, box, data, layout, theme, ratio, state ?? {});
  labels(context, data, layout, theme, ratio, state ?? {});
}

function token(context, box, data, layout, theme, ratio, state) {
  const { kind, size } = box;
  const answer = kind === 'answer' ? data.said[box.index - layout.first] : null;
  const hidden = answer && (box.index - layout.first >= (state.written ?? Infinity) || !data.question.length);
  const verdict = hidden ? 'given' : (answer?.verdict ?? 'given');
  const ink = { right: data.right, wrong: data.wrong, open: data.muted }[verdict] ?? data.text;
  context.globalAlpha = answer && state.pale ? PALE : 1;
  context.beginPath();
  context.roundRect(box.x, box.y, size, size, 0.16 * size);
  if (kind === 'question') {
    context.fillStyle = data.surface;
    context.fill();
  }
  context.setLineDash(kind === 'question' || (answer && verdict !== 'open') ? [] : [4 * ratio, 4 * ratio]);
  context.lineWidth = (verdict === 'wrong' ? 2.5 : 1.5) * ratio;
  context.strokeStyle = answer && !hidden ? ink : kind === 'question' ? data.muted : data.grid;
  context.stroke();
  context.setLineDash([]);
  const text = kind === 'question' ? data.question[box.index] : kind === 'separator' ? data.separator : hidden ? '' : (answer?.text ?? '');
  if (text) {
    const most = text.length > 1 ? Math.min(0.5, 1.35 / text.length) : 0.5;
    context.font = `600 ${most * size}px ${theme.font}`;
    context.fillStyle = kind === 'separator' ? data.muted : ink;
    context.fillText(text, box.x + size / 2, box.y + 0.52 * size);
  }
  if (MARKS[verdict] && size > 30 * ratio) {
    context.font = `700 ${0.24 * size}px ${theme.font}`;
    context.fillText(MARKS[verdict], box.x + 0.83 * size, box.y + 0.83 * size);
  }
  context.globalAlpha = 1;
}

/** What the rows are: in words, below each; below a wrong answer what is right. */
function labels(context, data, layout, theme, ratio, state) {
  const small = 14 * ratio;
  context.textAlign = 'left';
  context.fillStyle = data.muted;
  context.font = `400 ${small}px ${theme.font}`;
  const [asked, said] = ['question', 'answer'].map((kind) => layout.boxes.find((box) => box.kind === kind));
  if (asked) context.fillText('The question', asked.x, layout.single || !data.looks ? asked.y + asked.size + 0.6 * layout.label : asked.y - 0.45 * layout.label);
  if (!said) return;
  const wrong = state.pale ? [] : data.said.map((each, i) => [each, layout.byToken.get(layout.first + i)]).filter(([each]) => each.verdict === 'wrong');
  const y = said.y + said.size + 0.6 * layout.label;
  if (!wrong.length) context.fillText('The answer that it writes', said.x, y);
  context.textAlign = 'center';
  for (const [{ truth }, box] of wrong) context.fillText(box.size > 56 * ratio ? `must be ${truth}` : truth, box.x + box.size / 2, y);
  context.textAlign = 'left';
}

/** `cell` is what is pointed at: {answer} or {token}; `state` {written, pale, flown, caret}. */
export function mark(context, data, layout, theme, ratio, cell, state) {
  context.clearRect(0, 0, layout.width, layout.height);
  const { written = Infinity, pale = false, flown = 1, caret = null } = state ?? {};
  if (caret !== null) ring(context, layout.boxes[caret], data.accent, ratio);
  if (!data.looks || pale) return;
  const pointed = cell?.row ?? null;
  for (let i = 0; i < Math.min(written, data.said.length); i++) {
    const row = data.looks.rows[i];
    if (row < 0) continue;
    const from = layout.byToken.get(layout.first + i);
    const best = strongest(data.looks, row);
    if (pointed === null) line(context, layout, from, best, data, ratio, best.share, 1, 0.25 + 0.6 * best.share);
    else if (row !== pointed) line(context, layout, from, best, data, ratio, best.share, 1, 0.1);
  }
  if (pointed === null) return;
  const from = asking(data, layout, pointed);
  if (!from) return;
  ring(context, from, data.accent, ratio);
  for (const each of shares(data.looks, pointed)) {
    if (each.share < FAINT) continue;
    line(context, layout, from, each, data, ratio, each.share, flown, 0.3 + 0.7 * each.share);
    const to = layout.byToken.get(each.token);
    if (flown >= 0.75 && to) {
      context.globalAlpha = 0.35 * each.share;
      context.fillStyle = data.accent;
      context.beginPath();
      context.roundRect(to.x, to.y, to.size, to.size, 0.16 * to.size);
      context.fill();
      context.globalAlpha = 1;
      if (each.share >= 0.5) ring(context, to, data.accent, ratio);
    }
  }
}

function line(context, layout, from, { token, share }, data, ratio, weight, flown, alpha) {
  const to = layout.byToken.get(token);
  if (!from || !to || from === to || (flown === 1 && alpha < 0.5 && share < SHOWN)) return;
  const curve = arc(layout, from, to, ratio);
  context.globalAlpha = alpha;
  context.strokeStyle = context.fillStyle = data.measured;
  context.lineWidth = (1 + 2.2 * weight) * ratio;
  context.beginPath();
  context.moveTo(...curve[0]);
  if (flown >= 1) context.bezierCurveTo(...curve[1], ...curve[2], ...curve[3]);
  else for (let t = 0.04; t <= flown; t += 0.04) context.lineTo(...along(curve, t));
  context.stroke();
  if (flown < 1) {
    const [x, y] = along(curve, flown);
    context.beginPath();
    context.arc(x, y, 5 * ratio, 0, 2 * Math.PI);
    context.fill();
  }
  context.globalAlpha = 1;
}

function ring(context, box, colour, ratio) {
  if (!box) return;
  context.strokeStyle = colour;
  context.lineWidth = 3 * ratio;
  context.beginPath();
  context.roundRect(box.x, box.y, box.size, box.size, 0.16 * box.size);
  context.stroke();
}

/** Whose query a row is: the answer said there, or else the token that it stands at. */
export function asking({ looks }, layout, row) {
  const answer = looks.rows.indexOf(row);
  if (answer >= 0) return layout.byToken.get(layout.first + answer);
  return looks.shape[0] === looks.shape[1] ? layout.byToken.get(looks.places[row]) : undefined;
}

/** A query's shares: {key, token, share} of each key that is drawn. */
export const shares = ({ values, shape, places }, row) =>
  places.map((token, key) => ({ key, token, share: values[row * shape[1] + key] })).filter(({ token }) => token >= 0);

/** The key that a query looks at most. */
export const strongest = (looks, row) => shares(looks, row).reduce((best, each) => (each.share > best.share ? each : best));
