// Hover and choice shared between the components of a page, inside the browser: one event, no round trip to Python.

const HOVER = 'attention-lab:hover';
const CHOICE = 'attention-lab:choice';
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
