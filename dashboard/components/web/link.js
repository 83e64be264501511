// Hover shared between the components of a page, inside the browser: one event, no round trip to Python.

const HOVER = 'attention-lab:hover';

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
