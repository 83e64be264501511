// The stage: where heads, loss and accuracy stand on one canvas, and how they are painted at a step.

import { called, sentence } from '../matrix/data.js';
import { layOut, pick } from '../matrix/layout.js';
import { mark, paint } from '../matrix/paint.js';
import { accuracyChart, lossChart, pen } from './charts.js';
import { measurement, pattern, upTo } from './reel.js';

const HEADER = 24; // above each of the three parts, for its name
const GAP = 26; // between the heads and the charts
const CHART = { width: 300, height: 210 }; // the least that a chart needs
const STRIP = 150; // the height of one in a strip
const ABREAST = 16; // panels that flow, in a row at the most
const NARROWEST = 44; // what each of them takes of the width at least, its gap included
const STRETCH = 1.2; // how much higher than asked for the stage may be where that makes the heads larger

/** Where everything stands; in CSS pixels, but for `grid`, which is in device pixels as matrix/layout.js says. */
export function arrange(reel, width, ratio, measure) {
  const { panels, height } = reel;
  if (!panels.length) return { grid: null, ...charts(0, 0, width, height, width >= 2 * CHART.width), width, plots: null };
  const found = [];
  for (const across of [false, true]) {
    const room = Math.min(0.66 * width, width - CHART.width - GAP);
    if (room >= 200) {
      const grid = fit(reel, room, height - HEADER, ratio, measure, across);
      const x = right(grid.boxes) / ratio + GAP;
      found.push({ grid, ...charts(x, 0, width - x, Math.max(height, HEADER + grid.height / ratio), false) });
    }
    const wide = width >= 2 * CHART.width;
    const below = wide ? CHART.height : 2 * CHART.height;
    const grid = fit(reel, width, Math.max(180, STRETCH * height - HEADER - below - 10), ratio, measure, across);
    found.push({ grid, ...charts(0, HEADER + grid.height / ratio + 10, width, below, wide) });
  }
  // The largest heads on a stage that is not too high; else the lowest stage.
  const fitting = found.filter((one) => one.height <= STRETCH * height);
  const best = fitting.length
    ? fitting.reduce((one, other) => (other.grid.side > one.grid.side + 1 ? other : one))
    : found.reduce((one, other) => (other.height < one.height ? other : one));
  if (reel.flow) flow(panels, best.grid.abreast);
  const down = Math.round(HEADER * ratio);
  for (const box of best.grid.boxes) {
    box.y += down;
    box.top += down;
  }
  for (const heading of best.grid.headings) heading.y += down;
  Object.assign(best.grid, { width: Math.round(width * ratio), height: Math.round(best.height * ratio) });
  return { ...best, width, plots: null };
}

/** Where the loss and the accuracy stand alone, where others show the heads. */
export function arrangeCharts(width) {
  const wide = width >= 2 * CHART.width;
  return { grid: null, ...charts(0, 0, width, wide ? STRIP : 2 * STRIP, wide), width, plots: null };
}

/** The two charts in an area, side by side or one below the other, and where the stage then ends. */
function charts(x, y, width, height, wide) {
  const one = wide ? { width: (width - GAP) / 2, height } : { width, height: height / 2 };
  const second = wide ? { x: x + one.width + GAP, y } : { x, y: y + one.height };
  return { loss: { x, y, ...one }, accuracy: { ...second, ...one }, height: Math.ceil(y + height) };
}

/** The grid with the largest thumbnails for which it is no higher than `height`, if it can be. */
function fit(reel, width, height, ratio, measure, across) {
  if (!reel.flow) return scaled(reel.panels, width, height, ratio, measure, across);
  const most = Math.max(1, Math.min(ABREAST, reel.panels.length, Math.floor(width / NARROWEST)));
  const found = Array.from({ length: most }, (_, i) => {
    flow(reel.panels, i + 1);
    return { ...scaled(reel.panels, width, height, ratio, measure, across), abreast: i + 1 };
  });
  const worth = (grid) => (grid.height / ratio <= height ? grid.side : -grid.height);
  return found.reduce((best, grid) => (worth(grid) > worth(best) ? grid : best));
}

/** Let panels stand in reading order, so many abreast. */
function flow(panels, abreast) {
  panels.forEach((panel, i) => Object.assign(panel, { row: Math.floor(i / abreast), column: i % abreast }));
}

/** The grid of panels that have their places, as large as the height allows. */
function scaled(panels, width, height, ratio, measure, across) {
  const rows = new Set(panels.map((panel) => `${across ? '' : panel.group} ${panel.row}`)).size;
  let side = Math.max(36, height / rows);
  let grid = lay(panels, width, side, ratio, measure, across);
  for (let i = 0; i < 6 && grid.height / ratio > height && side > 36; i++) {
    side = Math.max(36, side - (grid.height / ratio - height) / rows);
    grid = lay(panels, width, side, ratio, measure, across);
  }
  return { ...grid, side: Math.min(...grid.boxes.map((box) => Math.max(box.width, box.height))) };
}

/** The grid, its groups below each other or, with `across`, beside each other. */
function lay(panels, width, side, ratio, measure, across) {
  const groups = [...new Set(panels.map((panel) => panel.group))];
  if (!across || groups.length === 1) return layOut({ panels, size: side }, width, ratio, measure);
  const whole = { boxes: [], headings: [], height: 0, labelled: true };
  let x = 0;
  for (const group of groups) {
    const members = panels.filter((panel) => panel.group === group);
    const own = members.map((panel, index) => ({ ...panel, index }));
    const part = layOut({ panels: own, size: side }, (width - (groups.length - 1) * GAP) / groups.length, ratio, measure);
    members.forEach((panel, index) => (whole.boxes[panel.index] = { ...part.boxes[index], x: part.boxes[index].x + x }));
    whole.headings.push(...part.headings.map((heading) => ({ ...heading, x: heading.x + x })));
    whole.height = Math.max(whole.height, part.height);
    whole.labelled &&= part.labelled;
    Object.assign(whole, { titleSize: part.titleSize, titleHeight: part.titleHeight });
    x += right(part.boxes) + Math.round(GAP * ratio);
  }
  return whole;
}

const right = (boxes) => Math.max(...boxes.map((box) => box.x + box.width));

/** What is to be seen at a step: how much of the loss, which picture, which measurement. */
export function view(reel, step) {
  return {
    step,
    losses: upTo(reel.loss.steps, step),
    picture: upTo(reel.patternSteps, step) - 1,
    measured: upTo(reel.accuracySteps, step) - 1,
  };
}

/** Put the patterns of a view into the panels; `fade` from 0 to 1 is how far they have come out of those before them. */
export function exposeAll(reel, seen, fade) {
  for (const panel of reel.panels) expose(panel, seen.picture, fade);
}

/** Paint a view whose patterns are in the panels; `fade` is how far the newest bars have come out of those before them. */
export function draw(context, reel, layout, theme, look, ratio, seen, fade) {
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.setLineDash([]);
  context.clearRect(0, 0, context.canvas.width, context.canvas.height);
  if (layout.grid) {
    const ink = { text: look.text, border: look.grid, font: theme.font };
    paint(context, { ...reel, colours: look.colours, forbidden: look.forbidden, dark: theme.dark }, layout.grid, ink, ratio);
  }
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  const tool = pen(context, ratio, look, theme.font);
  const heading = (words, x, y) => tool.text(words, x, y, { weight: '600', size: 14 });
  if (layout.grid) heading(pictureWords(reel, seen), 4, HEADER / 2);
  heading(lossWords(reel, seen), layout.loss.x, layout.loss.y + HEADER / 2);
  heading(accuracyWords(reel, seen), layout.accuracy.x, layout.accuracy.y + HEADER / 2);
  const below = ({ x, y, width, height }) => ({ x, y: y + HEADER, width, height: height - HEADER });
  const solved = reel.loss.solvedAt !== null && reel.loss.solvedAt <= seen.step;
  const now = reel.live ? null : seen.step;
  const losses = lossChart(tool, below(layout.loss), reel.loss, seen.losses, { now, solved });
  const accuracy = accuracyChart(tool, below(layout.accuracy), reel, bars(reel, seen.measured, fade));
  layout.plots = { losses, accuracy };
}

/** Put a picture into a panel, mixed with the one before while it fades in. */
function expose(panel, picture, fade) {
  if (picture < 0) return panel.values.fill(0);
  const now = pattern(panel, picture);
  if (fade >= 1 || picture === 0) return panel.values.set(now);
  const before = pattern(panel, picture - 1);
  for (let i = 0; i < now.length; i++) panel.values[i] = before[i] + (now[i] - before[i]) * fade;
  return undefined;
}

function bars(reel, index, fade) {
  if (index < 0) return null;
  const now = measurement(reel, index);
  if (fade >= 1 || index === 0) return now;
  const before = measurement(reel, index - 1);
  return now.map((value, i) => before[i] + (value - before[i]) * fade);
}

function pictureWords(reel, seen) {
  return seen.picture < 0 ? 'Heads: no weights kept yet' : `Attention patterns at step ${reel.patternSteps[seen.picture]}`;
}

function lossWords({ loss }, seen) {
  if (!seen.losses) return loss.count ? 'Loss: no step taken yet' : 'Loss';
  return `Loss at step ${loss.steps[seen.losses - 1]}: ${loss.values[seen.losses - 1].toFixed(2)} nats`;
}

function accuracyWords(reel, seen) {
  if (seen.measured < 0) return 'Accuracy by position';
  return `Accuracy by position at step ${reel.accuracySteps[seen.measured]}`;
}

/** The overlay: the outlined head, and the crosshair under the pointer. */
export function drawOver(context, reel, layout, theme, ratio, focus, cell) {
  context.clearRect(0, 0, context.canvas.width, context.canvas.height);
  if (!layout.grid) return;
  mark(context, { ...reel, dark: theme.dark }, layout.grid, theme, ratio, cell, focus);
}

/** What is under a point: {head, row, column}, {step, loss: index} or {bar: target}; null elsewhere. */
export function under(reel, layout, ratio, x, y) {
  const found = layout.grid && pick(reel.panels, layout.grid, x * ratio, y * ratio);
  if (found) return { head: found.panel, row: found.row, column: found.column };
  const within = (plot) => plot && x >= plot.x && x <= plot.x + plot.width && y >= plot.y - 4 && y <= plot.y + plot.height + 4;
  const { losses, accuracy } = layout.plots ?? {};
  if (within(losses)) {
    const { steps, count, axes: [[first, last]] } = reel.loss;
    const step = first + ((x - losses.x) / losses.width) * (last - first);
    let best = null;
    for (let i = 0; i < count; i++) if (best === null || Math.abs(steps[i] - step) < Math.abs(steps[best] - step)) best = i;
    return { step, loss: best };
  }
  if (within(accuracy)) return { bar: Math.min(reel.names.length - 1, Math.floor(((x - accuracy.x) / accuracy.width) * reel.names.length)) };
  return null;
}

/** What is under the pointer, in one sentence. */
export function describe(reel, seen, found) {
  if (!found) return '';
  if (found.head !== undefined) {
    const panel = reel.panels[found.head];
    if (seen.picture < 0) return `${called(panel)}: nothing to see yet`;
    const at = `at step ${reel.patternSteps[seen.picture]}`;
    if (found.row === null) return `${called(panel)}${panel.group ? `, ${panel.group}` : ''}, ${at}`;
    return `${sentence({ ...panel, values: pattern(panel, seen.picture) }, found.row, found.column)} (${at})`;
  }
  if (found.loss !== undefined) {
    const i = found.loss;
    return i === null || i >= seen.losses ? '' : `Step ${reel.loss.steps[i]}: loss ${reel.loss.values[i].toFixed(3)} nats`;
  }
  const i = found.bar;
  const name = reel.called[i];
  const ceiling = reel.ceiling[i] === null ? '' : `ceiling ${reel.ceiling[i].toFixed(2)}, `;
  const limits = `${ceiling}${reel.hit} ${reel.chance.toFixed(2)}`;
  if (seen.measured < 0) return `${name}: not measured yet; ${limits}`;
  const share = measurement(reel, seen.measured)[i].toFixed(3);
  return `${name}: ${share} right in ${reel.sequences[seen.measured]} sequences at step ${reel.accuracySteps[seen.measured]}; ${limits}`;
}
