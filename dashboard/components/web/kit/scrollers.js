// What scrolls sideways can be scrolled by key: a formula, a table, code or a strip with more than it has room for is a stop of
// the Tab key, and none where all of it can be seen. Not every browser sees to that by itself.

const SCROLLERS = '.katex, table, pre, [style*="overflow-x"]'; // where our pages let something scroll
const STOPS = 'a[href], button, input, select, textarea, [tabindex]';
const SOON = 250; // ms from a change until the page is looked at: many changes cost one look

/** Watch over what stands in `page`. Returns what stops it. */
export function scrolledByKey(page) {
  let timer = null;
  const later = () => {
    timer ??= setTimeout(() => {
      timer = null;
      page.querySelectorAll(SCROLLERS).forEach(look);
    }, SOON);
  };
  const observer = new MutationObserver(later);
  observer.observe(page, { childList: true, subtree: true, characterData: true });
  const sizes = new ResizeObserver(later);
  sizes.observe(page);
  document.fonts.addEventListener('loadingdone', later); // a formula grows with its font
  return () => {
    clearTimeout(timer);
    document.fonts.removeEventListener('loadingdone', later);
    observer.disconnect();
    sizes.disconnect();
  };
}

function look(element) {
  const more = element.scrollWidth > element.clientWidth && getComputedStyle(element).overflowX !== 'visible';
  const ours = 'scrolledByKey' in element.dataset;
  if (more && !ours && !element.matches('[tabindex]') && !element.querySelector(STOPS)) {
    element.tabIndex = 0;
    element.dataset.scrolledByKey = '';
  } else if (!more && ours) {
    element.removeAttribute('tabindex');
    delete element.dataset.scrolledByKey;
  }
}
