// The two charts of the film beside its heads: the loss so far, and the accuracy by position. Pure painting.

const FONT = 13; // CSS pixels of letters

/** What both charts need: a pen over `context` that counts in CSS pixels. */
export function pen(context, ratio, look, font) {
  const set = (size = FONT, weight = '') => (context.font = `${weight} ${size}px ${font}`);
  const line = (colour, width, dash = []) => {
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.setLineDash(dash);
  };
  const stroke = (x1, y1, x2, y2) => {
    context.beginPath();
    context.moveTo(x1, y1);
    context.lineTo(x2, y2);
    context.stroke();
  };
  const width = (text, size = FONT) => (set(size), context.measureText(text).width);
  /** Words at a point; `veil` gives them the background to stand on, where lines may pass. */
  const text = (words, x, y, { colour = look.text, align = 'left', size = FONT, weight = '', veil = false } = {}) => {
    set(size, weight);
    context.textAlign = align;
    context.textBaseline = 'middle';
    if (veil) {
      const wide = context.measureText(words).width + 6;
      const left = align === 'left' ? x - 3 : align === 'right' ? x - wide + 3 : x - wide / 2;
      context.globalAlpha = 0.82;
      context.fillStyle = look.background;
      context.fillRect(left, y - size * 0.65, wide, size * 1.3);
      context.globalAlpha = 1;
    }
    context.fillStyle = colour;
    context.fillText(words, x, y);
    context.textAlign = 'left';
  };
  /** The name of an axis, written upwards about a point. */
  const upwards = (words, x, y) => {
    context.save();
    context.translate(x, y);
    context.rotate(-Math.PI / 2);
    text(words, 0, 0, { colour: look.muted, align: 'center', size: 12 });
    context.restore();
  };
  return { context, ratio, look, line, stroke, text, upwards, width };
}

/** Round numbers from 0 to `top` that are no less than `least`, about `count` of them. */
export function ticks(least, top, count) {
  const raw = (top - Math.max(0, least)) / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((f) => f * power).find((f) => f >= raw);
  const all = Array.from({ length: Math.floor(top / step + 1e-9) + 1 }, (_, i) => +(i * step).toPrecision(12));
  return all.filter((value) => value >= least);
}

/** Steps worth a number, the most telling first: both ends, then 10, 100 …, then 5, 20, 50 … */
export function marksOf(stops) {
  const last = stops.at(-1);
  const round = [];
  for (const factors of [[1], [5], [2], [1.5, 3, 4, 7]]) {
    for (let power = 1; power <= last; power *= 10) {
      for (const factor of factors) if (factor * power % 1 === 0 && factor * power > stops[0] && factor * power < last) round.push(factor * power);
    }
  }
  return [stops[0], last, ...round];
}

/**
 * The loss up to a step, between guessing and the floor, where that is known. `box` is the whole area; the axes are those of
 * every picture of this loss (loss_axes in dashboard/figures/loss.py). Returns where the plot itself is, for the pointer.
 */
export function lossChart(pen, box, loss, shown, { now, solved }) {
  const { context, look } = pen;
  const plot = { x: box.x + 52, y: box.y + 8, width: box.width - 58, height: box.height - 34 };
  const [[first, last], [least, most]] = loss.axes;
  const at = (step) => (step - first) / (last - first);
  const x = (step) => plot.x + at(step) * plot.width;
  const y = (nats) => plot.y + plot.height * (1 - (Math.min(nats, most) - least) / (most - least));
  for (const value of ticks(least, most, Math.max(2, Math.min(5, plot.height / 30)))) {
    pen.line(look.grid, 1);
    pen.stroke(plot.x, y(value), plot.x + plot.width, y(value));
    pen.text(String(value), plot.x - 6, y(value), { colour: look.muted, align: 'right', size: 12 });
  }
  pen.upwards('loss (nats)', box.x + 7, plot.y + plot.height / 2);
  marks(pen, plot, at, ticks(first, last, 5), 'step');
  pen.line(look.chance, 1.75, [2, 3]);
  pen.stroke(plot.x, y(loss.guessing), plot.x + plot.width, y(loss.guessing));
  if (loss.floor !== null) {
    pen.line(look.ceiling, 1.75, [6, 4]);
    pen.stroke(plot.x, y(loss.floor), plot.x + plot.width, y(loss.floor));
  }
  if (now !== null) {
    pen.line(look.muted, 1);
    pen.stroke(x(now), plot.y, x(now), plot.y + plot.height);
  }
  if (solved) {
    pen.line(look.right, 2);
    pen.stroke(x(loss.solvedAt), plot.y, x(loss.solvedAt), plot.y + plot.height);
  }
  if (shown) {
    pen.line(look.measured, 2.25);
    context.lineJoin = 'round'; // a noisy loss would else grow thorns
    context.beginPath();
    for (let i = 0; i < shown; i++) context.lineTo(x(loss.steps[i]), y(loss.values[i]));
    context.stroke();
    context.beginPath();
    context.arc(x(loss.steps[shown - 1]), y(loss.values[shown - 1]), 4, 0, 2 * Math.PI);
    context.fillStyle = look.measured;
    context.fill();
  } else {
    const middle = { colour: look.muted, align: 'center', size: 15, veil: true };
    if (!loss.count) pen.text('waiting for the first step', plot.x + plot.width / 2, plot.y + plot.height / 2, middle);
  }
  const newest = shown ? loss.steps[shown - 1] : -1;
  const heldOut = (loss.heldOut ?? []).filter(([step]) => step <= newest);
  if (heldOut.length) {
    pen.line(look.right, 2.75);
    context.beginPath();
    for (const [step, nats] of heldOut) context.lineTo(x(step), y(nats));
    context.stroke();
    context.fillStyle = look.right;
    for (const [step, nats] of heldOut) {
      context.beginPath();
      context.arc(x(step), y(nats), 3, 0, 2 * Math.PI); // between these points nothing was measured
      context.fill();
    }
    const words = `held out: ${heldOut.at(-1)[1].toFixed(2)}`;
    pen.text(words, plot.x + 3, plot.y + plot.height - 8, { colour: look.right, veil: true });
  }
  // A loss that does not fall lies about the line of guessing: the line's name stands over the noise.
  let crest = loss.guessing;
  for (let i = 0; i < shown; i++) if (at(loss.steps[i]) > 0.55) crest = Math.max(crest, loss.values[i]);
  const guessing = `${loss.guess}: ${loss.guessing.toFixed(2)}`;
  const above = Math.max(plot.y + 7, y(crest) - 9);
  pen.text(guessing, plot.x + plot.width - 3, above, { colour: look.chance, align: 'right', veil: true });
  if (loss.floor !== null) {
    const floor = `loss floor: ${loss.floor.toFixed(2)}`;
    // Under its line, or where the line of 0 would run through it over its line: a loss begins high on the left.
    const under = Math.min(plot.y + plot.height - 8, y(loss.floor) + 10);
    const place = Math.abs(under - y(0)) < 9 ? y(loss.floor) - 10 : under;
    pen.text(floor, plot.x + 3, place, { colour: look.ceiling, veil: true });
  }
  if (solved) {
    const early = at(loss.solvedAt) < 0.5;
    const place = x(loss.solvedAt) + (early ? 6 : -6);
    const words = { colour: look.right, align: early ? 'left' : 'right', veil: true };
    pen.text(`✓ solved at ${loss.solvedAt}`, place, y(loss.guessing) + 13, words);
  }
  return plot;
}

/** The steps below an axis: as many as have room, and its name at the right end of the line. */
function marks(pen, plot, at, steps, name) {
  const { look } = pen;
  const y = plot.y + plot.height + 13;
  const taken = [[plot.x + plot.width - pen.width(name, 12) - 4, Infinity]];
  pen.text(name, plot.x + plot.width, y, { colour: look.muted, align: 'right', size: 12 });
  for (const step of steps) {
    const x = plot.x + at(step) * plot.width;
    const half = pen.width(String(step), 12) / 2 + 5;
    if (taken.some(([left, right]) => x + half > left && x - half < right)) continue;
    taken.push([x - half, x + half]);
    pen.line(look.grid, 1);
    pen.stroke(x, plot.y + plot.height, x, plot.y + plot.height + 4);
    pen.text(String(step), x, y, { colour: look.muted, align: 'center', size: 12 });
  }
}

/** Accuracy of every target as bars before their ceilings, where those are known; `values` null while nothing is measured. */
export function accuracyChart(pen, box, reel, values) {
  const { context, look } = pen;
  const { names, ceiling, chance, groups, hit } = reel;
  const beside = 18 + Math.max(...['ceiling', hit].map((name) => pen.width(name, 12)));
  const plot = { x: box.x + 34, y: box.y + 20, width: box.width - 34 - beside, height: box.height - 44 };
  const slot = plot.width / names.length;
  const y = (share) => plot.y + plot.height * (1 - share / 1.02);
  for (const value of [0, 0.5, 1]) {
    pen.line(look.grid, 1);
    pen.stroke(plot.x, y(value), plot.x + plot.width, y(value));
    pen.text(String(value), plot.x - 6, y(value), { colour: look.muted, align: 'right', size: 12 });
  }
  const wide = slot > 5 ? 0.88 : 1;
  names.forEach((_, i) => {
    const left = plot.x + (i + (1 - wide) / 2) * slot;
    context.fillStyle = look.surface;
    if (ceiling[i] !== null) context.fillRect(left, y(ceiling[i]), wide * slot, y(0) - y(ceiling[i]));
    if (values) {
      context.fillStyle = look.measured;
      context.fillRect(plot.x + (i + 0.18) * slot, y(values[i]), 0.64 * slot, y(0) - y(values[i]));
    }
    if (ceiling[i] === null) return;
    pen.line(look.ceiling, 2);
    pen.stroke(left, y(ceiling[i]), left + wide * slot, y(ceiling[i]));
  });
  pen.line(look.chance, 1.75, [2, 3]);
  pen.stroke(plot.x, y(chance), plot.x + plot.width, y(chance));
  const right = plot.x + plot.width + 5;
  pen.text(hit, right, y(chance), { colour: look.chance, size: 12 });
  if (ceiling.at(-1) !== null && ceiling.at(-1) - chance > 18 / plot.height) pen.text('ceiling', right, y(ceiling.at(-1)), { colour: look.ceiling, size: 12 });
  nameTargets(pen, plot, names, slot);
  nameGroups(pen, plot, groups, slot);
  if (!values) pen.text('not measured yet', plot.x + plot.width / 2, plot.y + plot.height / 2, { colour: look.muted, align: 'center', size: 15, veil: true });
  return plot;
}

function nameTargets(pen, plot, names, slot) {
  const size = 12;
  const every = Math.max(1, Math.ceil((Math.max(...names.map((name) => pen.width(name, size))) + 4) / slot));
  names.forEach((name, i) => {
    if (i % every) return;
    pen.text(name, plot.x + (i + 0.5) * slot, plot.y + plot.height + 12, { colour: pen.look.muted, align: 'center', size });
  });
}

function nameGroups(pen, plot, groups, slot) {
  for (let start = 0; start < groups.length; ) {
    let end = start;
    while (end < groups.length && groups[end] === groups[start]) end++;
    const x = plot.x + start * slot;
    if (start) {
      pen.line(pen.look.muted, 1, [4, 3]);
      pen.stroke(x, plot.y - 14, x, plot.y + plot.height);
    }
    if (pen.width(groups[start]) < (end - start) * slot) {
      pen.text(groups[start], x + ((end - start) * slot) / 2, plot.y - 10, { colour: pen.look.muted, align: 'center' });
    }
    start = end;
  }
}
