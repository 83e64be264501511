// A component's life: Streamlit calls its default export at every rerun, and again when the place is taken away.

/**
 * The default export of a component: `make(parentElement)` once a place, then `update(data, fire, tell)` at every rerun.
 * Python hears once of what is fired, and keeps what it is told until it is told otherwise.
 */
export function mounting(make) {
  const mounted = new WeakMap(); // parentElement -> what was made for it
  return ({ data, parentElement, setTriggerValue, setStateValue }) => {
    let made = mounted.get(parentElement);
    if (!made) {
      made = make(parentElement);
      mounted.set(parentElement, made);
    }
    made.update(data, setTriggerValue, setStateValue);
    return () =>
      // Streamlit also calls this when data outruns a call in progress, while the component lives on: ask the document.
      setTimeout(() => {
        if (made.host.isConnected) return;
        made.dispose();
        mounted.delete(parentElement);
      });
  };
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
