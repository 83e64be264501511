// What Python sent, as typed arrays (see pack_reel in dashboard/components/film.py), and what of it belongs to a step.

import { unpack } from '../kit/payload.js';

export function decode(message) {
  const { header, body } = unpack(message);
  const at = body.byteOffset;
  const floats = (offset, count) => new Float32Array(body.buffer, at + offset, count);
  const pictures = header.patternSteps.length;
  const panels = header.panels.map((record, index) => {
    const cells = record.rows * record.columns;
    return {
      ...record,
      index,
      cells,
      patterns: body.subarray(record.patterns, record.patterns + pictures * cells),
      values: new Uint8Array(cells), // at the moment that is shown
      last: body.subarray(record.patterns + (pictures - 1) * cells, record.patterns + pictures * cells),
      mask: record.mask === undefined ? null : body.subarray(record.mask, record.mask + cells),
      queries: header.labels[record.queries],
      keys: header.labels[record.keys],
    };
  });
  const { loss, names } = header;
  const look = (one) => ({ ...one, colours: body.subarray(one.colours, one.colours + 768) });
  return {
    ...header,
    panels,
    looks: { light: look(header.looks.light), dark: look(header.looks.dark) },
    loss: { ...loss, steps: floats(loss.steps, loss.count), values: floats(loss.values, loss.count) },
    accuracy: floats(header.accuracy, header.accuracySteps.length * names.length),
  };
}

/** How many of the ascending `steps` are at most `step`. */
export function upTo(steps, step) {
  let low = 0;
  let high = steps.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (steps[middle] <= step) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The pattern of a head at a picture, as bytes. */
export function pattern(panel, picture) {
  return panel.patterns.subarray(picture * panel.cells, (picture + 1) * panel.cells);
}

/** Accuracy of every target at a measurement. */
export function measurement(reel, index) {
  const targets = reel.names.length;
  return reel.accuracy.subarray(index * targets, (index + 1) * targets);
}

/** Where on the way through `stops` a step lies: 1.5 is in the middle between the second and the third. */
export function place(stops, step) {
  const after = upTo(stops, step);
  if (after === 0) return 0;
  if (after === stops.length) return stops.length - 1;
  return after - 1 + (step - stops[after - 1]) / (stops[after] - stops[after - 1]);
}

/** The step at a place on that way: the inverse of `place`. */
export function stepAt(stops, place) {
  const before = Math.min(stops.length - 1, Math.floor(place));
  const after = Math.min(stops.length - 1, before + 1);
  return stops[before] + (place - before) * (stops[after] - stops[before]);
}

/** The one of `steps` that is nearest to a step; the later of two. */
export function nearest(steps, step) {
  return steps.reduce((best, one) => (Math.abs(one - step) <= Math.abs(best - step) ? one : best), steps[0]);
}
