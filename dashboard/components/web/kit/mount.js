// A component's life: Streamlit calls its default export at every rerun, and again when the place is taken away.

import { placeOf } from './streamlit_private.js';

const places = new Map(); // parentElement -> {name, template, message, host}: what stands there

/** All that is mounted in this page now. A document is written from it (document/write.js). */
export const standing = () => [...places.values()].filter(({ host }) => host.isConnected);

/**
 * The default export of the component `name`: `make(parentElement)` once a place, then `update(data, fire, tell)` at
 * every rerun. Python hears once of what is fired, and keeps what it is told until it is told otherwise.
 */
export function mounting(name, make) {
  const mounted = new WeakMap(); // parentElement -> what was made for it
  return ({ data, parentElement, setTriggerValue, setStateValue }) => {
    let made = mounted.get(parentElement);
    if (!made) {
      const template = markup(parentElement);
      made = make(parentElement);
      mounted.set(parentElement, made);
      places.set(parentElement, { name, template, host: made.host });
    }
    places.get(parentElement).message = data;
    made.update(data, setTriggerValue, setStateValue);
    placeOf(parentElement)?.setAttribute('data-drawn', ''); // a page is settled once all its components are drawn
    document.dispatchEvent(new Event('attention-lab-drawn'));
    return () =>
      // Streamlit also calls this when data outruns a call in progress, while the component lives on: ask the document.
      setTimeout(() => {
        if (made.host.isConnected) return;
        made.dispose();
        mounted.delete(parentElement);
        places.delete(parentElement);
      });
  };
}

/** The markup that Python gave to a component, before its script has drawn anything; style sheets are no part of it. */
function markup(parentElement) {
  const copy = document.createElement('div');
  copy.innerHTML = parentElement.innerHTML;
  for (const each of copy.querySelectorAll('link, style')) each.remove();
  return copy.innerHTML.trim();
}

/** Call `handler` when the pixel ratio changes: a window moved to another screen keeps its size. Returns what stops it. */
export function onRatio(handler) {
  let query = null;
  const changed = () => {
    watch();
    handler();
  };
  const watch = () => {
    query?.removeEventListener('change', changed);
    query = window.matchMedia(`(resolution: ${window.devicePixelRatio}dppx)`);
    query.addEventListener('change', changed);
  };
  watch();
  return () => query.removeEventListener('change', changed);
}
