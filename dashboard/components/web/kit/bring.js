// Brings an element of the page into sight, below the words of a lecture, which stay where they are.

import { isMeasuring, isSettled, page } from './streamlit_private.js';

const AIR = 12; // pixels around it
const SETTLES = 4000; // milliseconds after which a page that was drawn has its heights
const WAITS = 15000; // milliseconds within which it has come, unless the page still trains or measures something
const BAR = 3.5; // height of the bar of menus, in rem
let present = null; // the one that is brought: a later one takes its place
let watching = false;

/**
 * Scroll as little as shows what `find` gives, once it is drawn, for as long as the page may still grow; not after the
 * reader has scrolled. Where it is higher than the room for it, its upper part is shown.
 */
export function bring(find) {
  const wish = (present = {});
  let waits = performance.now() + WAITS;
  let settled = performance.now();
  watch();
  const look = () => {
    if (wish !== present) return;
    const place = find();
    if (!place?.clientHeight || place.querySelector('[aria-busy=true]')) {
      if (isMeasuring()) waits = performance.now() + WAITS;
      if (performance.now() < waits) setTimeout(look, 100);
      return;
    }
    show(place);
    if (!isSettled()) settled = performance.now();
    if (performance.now() - settled < SETTLES && performance.now() < waits) setTimeout(look, 200); // what stands above it may still grow
  };
  setTimeout(look, 300); // the page before may still stand
}

/** Where the room for the page begins, in pixels from the window's edge. */
const ceiling = () =>
  document.querySelector('.st-key-lecture')?.getBoundingClientRect().bottom ??
  BAR * parseFloat(getComputedStyle(document.documentElement).fontSize);

function show(place) {
  const { top, bottom } = place.getBoundingClientRect();
  const [above, below] = [top - ceiling() - AIR, bottom - innerHeight + AIR];
  const by = above < 0 || above < below ? above : Math.max(below, 0);
  page().scrollBy({ top: Math.max(by, -page().scrollTop), behavior: 'instant' });
}

/** Who scrolls by hand is left alone. */
function watch() {
  if (watching) return;
  watching = true;
  for (const by of ['wheel', 'touchmove', 'pointerdown'])
    document.addEventListener(by, () => (present = null), { capture: true, passive: true });
}
