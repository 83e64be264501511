// What the components of a page share inside the browser: the hovered cell, which head is chosen or pointed at, its pattern,
// a position that is dragged, and a replay.
// One event, no round trip to Python.

const HOVER = 'attention-lab:hover';
const CHOICE = 'attention-lab:choice';
const LIGHT = 'attention-lab:light';
const MOVE = 'attention-lab:move';
const PATTERN = 'attention-lab:pattern';
const REPLAY = 'attention-lab:replay';
const choices = new Map(); // group -> the number of its chosen head

function say(type, group, what, source) {
  window.dispatchEvent(new CustomEvent(type, { detail: { group, what, source } }));
}

function hear(type, self, handler) {
  const heard = ({ detail: { group, what, source } }) => source !== self && handler(what, group);
  window.addEventListener(type, heard);
  return () => window.removeEventListener(type, heard);
}

/**
 * Tell the others of `group` which cell the pointer is on. `cell` is {row, column, rows, columns}, the last two being
 * the shape of the pattern, or null when the pointer has left. `source` is whoever speaks.
 */
export const announce = (group, cell, source) => say(HOVER, group, cell, source);

/** Call `handler(cell or null, group)` when somebody other than `self` speaks; returns what stops it. */
export const listen = (self, handler) => hear(HOVER, self, handler);

/** Say which head of `group` is chosen, so that a grid need not be sent anew to outline another. */
export function choose(group, choice, source) {
  choices.set(group, choice);
  say(CHOICE, group, choice, source);
}

/** The head of `group` that was chosen last, if any. */
export const chosen = (group) => choices.get(group);

/** Call `handler(choice, group)` when somebody other than `self` chooses; returns what stops it. */
export const heed = (self, handler) => hear(CHOICE, self, handler);

/** Say which head is pointed at, by its name, in words or in a picture; null is none. */
export const light = (name, source) => say(LIGHT, null, name, source);

/** Call `handler(name or null)` when somebody other than `self` points at a head; returns what stops it. */
export const lit = (self, handler) => hear(LIGHT, self, handler);

/** Tell the others of `group` at which position its cursor is, counted from 1. */
export const move = (group, position, source) => say(MOVE, group, position, source);

/** Call `handler(position, group)` when somebody other than `self` moves a cursor; returns what stops it. */
export const moved = (self, handler) => hear(MOVE, self, handler);

/**
 * Hand over the pattern of a head that was just chosen, which a grid holds before Python sends the head: `data` is the
 * grid's message (see matrix/data.js), `number` the panel.
 */
export const hand = (group, data, number, source) => say(PATTERN, group, { data, number }, source);

/** Call `handler({ data, number }, group)` when somebody other than `self` hands a pattern over; returns what stops it. */
export const take = (self, handler) => hear(PATTERN, self, handler);

/**
 * Show a moment of a replay in the pictures of the page: `film` is { panels, look }, its heads with the `values` of that
 * moment (see film/reel.js) and their colours; null when it is over. Returns whether a picture shows it.
 */
export function project(film, source) {
  const what = { film, shown: false };
  say(REPLAY, null, what, source);
  return what.shown;
}

/** Call `handler(film or null)`, which returns whether it shows it, when somebody replays; returns what stops it. */
export const screen = (self, handler) =>
  hear(REPLAY, self, (what) => {
    what.shown = handler(what.film) || what.shown;
  });
