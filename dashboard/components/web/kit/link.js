// Hover and choice shared between the components of a page, inside the browser: one event, no round trip to Python.

const HOVER = 'attention-lab:hover';
const CHOICE = 'attention-lab:choice';
const choices = (window[Symbol.for(CHOICE)] ??= new Map()); // group -> number; each component loads a link.js of its own

/**
 * Tell the others of `group` which cell the pointer is on. `cell` is {row, column, rows, columns}, the last two being
 * the shape of the pattern, or null when the pointer has left. `source` is whoever speaks.
 */
export function announce(group, cell, source) {
  const nowhere = { row: null, column: null, rows: null, columns: null };
  window.dispatchEvent(new CustomEvent(HOVER, { detail: { group, source, ...(cell ?? nowhere) } }));
}

/** Call `handler(cell or null, group)` when somebody other than `self` speaks; returns what stops it. */
export function listen(self, handler) {
  const heard = ({ detail }) => {
    if (detail.source !== self) handler(detail.row === null ? null : detail, detail.group);
  };
  window.addEventListener(HOVER, heard);
  return () => window.removeEventListener(HOVER, heard);
}

/** Say which head of `group` is chosen, so that a grid need not be sent anew to outline another. */
export function choose(group, choice, source) {
  choices.set(group, choice);
  window.dispatchEvent(new CustomEvent(CHOICE, { detail: { group, choice, source } }));
}

/** The head of `group` that was chosen last, if any. */
export const chosen = (group) => choices.get(group);

/** Call `handler(choice, group)` when somebody other than `self` chooses; returns what stops it. */
export function heed(self, handler) {
  const heard = ({ detail }) => {
    if (detail.source !== self) handler(detail.choice, detail.group);
  };
  window.addEventListener(CHOICE, heard);
  return () => window.removeEventListener(CHOICE, heard);
}
