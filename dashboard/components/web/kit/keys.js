// Keys that stand for something on the page: pressed by themselves, and no part of what is typed.

export const TYPING = 'input, textarea, select, [contenteditable]:not([contenteditable=false])';
/** What the arrow keys move by itself, where it has the focus. */
export const MOVED = '[role=slider], [role=radio], [role=tab], [role=menuitem], [role=option], [role=combobox], [role=grid], canvas';

/** Is it a key by itself, whose focus is on nothing that takes it? A letter is taken by a text, an arrow by more. */
export const isPlain = (event) =>
  !(event.ctrlKey || event.metaKey || event.altKey || event.composedPath()[0].matches?.(event.key.length === 1 ? TYPING : `${TYPING}, ${MOVED}`));
