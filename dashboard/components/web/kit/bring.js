// Brings an element of the page into sight, below the words of a lecture, which stay where they are.

import { isCaption, isMeasuring, isSettled, page, pieces } from './streamlit_private.js';

const AIR = 12; // pixels around it
const CUT = 2; // pixels of a piece of the page on both sides of an edge that cuts it
const BELONGS = 24; // pixels between a picture and its caption at most: the caption is not read without it
const BACK = 0.2; // of the room for the page: so much of what stands above may be seen beside what is higher than the room
const SETTLES = 4000; // milliseconds after which a page that was drawn has its heights
const WAITS = 15000; // milliseconds within which it has come, unless the page still trains or measures something
const BAR = 3.5; // height of the bar of menus, in rem
let present = null; // the one that is brought: a later one takes its place
let watching = false;

/**
 * Scroll as little as shows what `find` gives, once it is drawn, for as long as the page may still grow; not after the
 * reader has scrolled. Where it is higher than the room for it, its upper part is shown. Where it can be helped, nothing
 * above it is cut by the words.
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
  const edge = ceiling();
  const [least, most] = [bottom - innerHeight + AIR, top - edge - AIR]; // by how much it is scrolled where all of it is seen
  const fits = least <= most;
  const range = fits ? [least, most] : [most - BACK * (innerHeight - edge), most];
  page().scrollBy({ top: whole(range, fits ? 0 : most, edge), behavior: 'instant' });
}

/** Of all ways to scroll within a range, the one next to `wish` that cuts nothing at the `edge`; else next to it at all. */
function whole([least, most], wish, edge) {
  const { scrollTop, scrollHeight, clientHeight } = page();
  const within = (by) => Math.min(Math.max(by, -scrollTop), scrollHeight - clientHeight - scrollTop);
  const near = within(Math.min(Math.max(wish, least), most));
  const edges = pieces().map((each) => {
    const { top, bottom } = each.getBoundingClientRect();
    return isCaption(each) ? { top: top - BELONGS, bottom } : { top, bottom, begins: true };
  });
  const cuts = (by) => scrollTop + by > 0 && edges.some(({ top, bottom }) => top - by < edge - CUT && bottom - by > edge + CUT);
  const ways = [near, ...edges.filter(({ begins }) => begins).flatMap(({ top }) => [top - edge - AIR, top - edge])]
    .filter((by) => by >= Math.min(least, near) && by <= Math.max(most, near) && within(by) === by)
    .sort((one, other) => Math.abs(one - near) - Math.abs(other - near));
  return ways.find((by) => !cuts(by)) ?? near;
}

/** Who scrolls by hand is left alone. */
function watch() {
  if (watching) return;
  watching = true;
  for (const by of ['wheel', 'touchmove', 'pointerdown'])
    document.addEventListener(by, () => (present = null), { capture: true, passive: true });
}
