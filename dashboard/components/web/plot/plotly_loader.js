// plotly.js, loaded once per page from the application's own server, or from the page itself, which may hold it.

import { root } from '../kit/root.js';

let loading = null;
let held = null;

/** What needs no server says where plotly.js is: `give()` is it as text, or a promise of it. */
export function hold(give) {
  held = give;
}

/** The Plotly object; `version` is part of the address, so that the browser may keep the file for a year. */
export function loadPlotly(version) {
  if (window.Plotly) return Promise.resolve(window.Plotly);
  loading ??= held ? Promise.all([held(), idle()]).then(([source]) => run(source)) : idle().then(() => fetchScript(version));
  loading.catch(() => (loading = null)); // the next figure tries again
  return loading;
}

/** Running plotly.js stops the page for a third of a second; what is painted without it, the grid of heads, goes first.
 *  So: after a moment, when the page has nothing to do, at the latest 0.3 s later. */
function idle() {
  const rested = (then) => (window.requestIdleCallback ? requestIdleCallback(then, { timeout: 300 }) : setTimeout(then, 200));
  return new Promise((resolve) => setTimeout(() => rested(resolve), 100));
}

const address = (version) => new URL(`assets/plotly.min.js?v=${encodeURIComponent(version)}`, root).href;

/** plotly.js as text, for a page of its own; where it comes from the server, the browser has kept the file. */
export async function plotlySource(version) {
  if (held) return held();
  const answer = await fetch(address(version));
  if (!answer.ok) throw new Error('plotly.js did not arrive');
  return answer.text();
}

function run(source) {
  const script = document.createElement('script');
  script.textContent = source;
  document.head.append(script); // runs at once
  script.remove();
  if (!window.Plotly) throw new Error('plotly.js is empty');
  return window.Plotly;
}

function fetchScript(version) {
  return new Promise((resolve, reject) => {
    const script = document.createElement('script');
    script.src = address(version);
    script.onload = () => (window.Plotly ? resolve(window.Plotly) : reject(new Error('plotly.js is empty')));
    script.onerror = () => reject(new Error('plotly.js did not arrive'));
    document.head.append(script);
  });
}
