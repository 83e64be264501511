// The private parts of Streamlit's page that our scripts lean on, all of them; those of our style sheet stand in frame/style.css.
//
// Streamlit promises only the class st-key-<key>. Where another name is gone the page works on, and each name says what it
// does then. tests/browser/house/test_private_parts.py takes each away, and says after an upgrade which are gone.

/** What st.html drew in the container of a key. Without it what is saved is all that stands in that container. */
export const drawnHtml = (key) => {
  const place = document.querySelector(`.st-key-${CSS.escape(key)}`);
  return place?.querySelector(`.${HTML}`) ?? place;
};

/** The class of what st.html drew. Without it a document leaves out tables and strips. */
export const HTML = 'stHtml';

/** Is a rerun under way? Without it a file that is saved meanwhile may hold a figure of one view and the link of another. */
const UNDER_WAY = ['running', 'rerunRequested'].map((state) => `[data-test-script-state=${state}]`).join();
export const isRerunning = () => document.querySelector(UNDER_WAY) !== null;

/** Has the page its server, which will answer? Without it a chosen head waits for Python; a document has none. */
export const isConnected = () => document.querySelector('[data-test-connection-state=CONNECTED]') !== null;

/** The page beside the sidebar. Without it no step of a lecture scrolls, and a sidebar's sentences count as the page's. */
export const page = () => document.querySelector('[data-testid=stMain]') ?? document.body;

/** Close the sidebar where it lies over the page, as on a phone. Without it a training that was begun there stays hidden. */
export function uncover() {
  const sidebar = document.querySelector('[data-testid=stSidebar]');
  if (sidebar !== null && sidebar.getBoundingClientRect().right > page().getBoundingClientRect().left + 1)
    sidebar.querySelector('[data-testid=stSidebarCollapseButton] button')?.click();
}

/** Close the sidebar where it lies over the page, once another page was chosen in it. Without it the page stays hidden. */
export function uncoverWhenChosen() {
  const chosen = ({ target }) => target.closest?.('[data-testid=stSidebarNavLink]') && setTimeout(uncover);
  document.addEventListener('click', chosen);
  return () => document.removeEventListener('click', chosen);
}

/** Its sentences: captions, paragraphs and lists; no titles, labels of widgets, buttons or tables. Without them no term is explained. */
export const sentences = () =>
  [...page().querySelectorAll('[data-testid=stCaptionContainer] p, [data-testid=stMarkdownContainer] :is(p, li)')].filter(
    (each) => !each.closest('button, label, summary, table, [data-testid=stWidgetLabel], [data-testid=stAlert]')
  );

/** What Streamlit puts around a component. Without it a document leaves out pictures. */
const PLACE = '.stBidiComponent';

/** The place of a component, by the element that Streamlit gives to its script; null where there is none. */
export function placeOf(parentElement) {
  const root = parentElement.getRootNode();
  return (root instanceof ShadowRoot ? root.host : parentElement).closest(PLACE);
}

/**
 * Call `handler` when the page has its server again, having lost it. Returns what stops it. Without it the first press
 * after a restart of the server is lost.
 */
export function onReconnect(handler) {
  const app = document.querySelector('[data-testid=stApp]');
  if (app === null) return () => {};
  let lost = false;
  const observer = new MutationObserver(() => {
    const connected = app.dataset.testConnectionState === 'CONNECTED';
    if (connected && lost) handler();
    lost = !connected;
  });
  observer.observe(app, { attributeFilter: ['data-test-connection-state'] });
  return () => observer.disconnect();
}

/**
 * Does the page stand still: nothing is being drawn anew, nothing is pale, and every component has its data? Without the
 * first it does where the others hold.
 */
export function isSettled() {
  const state = document.querySelector('[data-testid=stApp]')?.dataset.testScriptState;
  return (
    (state === undefined || state === 'notRunning') &&
    [...document.querySelectorAll('[data-testid=stElementContainer]')].every(
      (each) => each.dataset.stale !== 'true' && getComputedStyle(each).opacity === '1'
    ) &&
    [...document.querySelectorAll(PLACE)].every((each) => 'drawn' in each.dataset)
  );
}

/** The kinds of things of which Streamlit makes a page. A document keeps those that show something, and are known. */
export const KINDS = {
  column: '[data-testid=stColumn]',
  columns: '[data-testid=stHorizontalBlock]',
  block: '[data-testid=stVerticalBlock]',
  element: '[data-testid=stElementContainer]',
  heading: '[data-testid=stHeading]',
  caption: '[data-testid=stCaptionContainer]',
  alert: '[data-testid=stAlert]',
  markdown: '[data-testid=stMarkdownContainer]',
  html: `.${HTML}`,
  metric: '[data-testid=stMetric]',
  table: '[data-testid=stDataFrame]',
  folded: 'details:not([open])',
  widget: 'button, label, input, a, [role=radiogroup], .stSlider, .stSelectbox, .stMultiSelect, .stProgress, .stSpinner',
  component: PLACE,
};
/** The pieces of the page that scroll: what stands on it, its title, which is higher than its place, and frames. Without them the words of a lecture may cut one. */
export const pieces = () =>
  [...main().querySelectorAll(`${KINDS.element}, ${KINDS.block}, h1`)].filter(
    (each) =>
      each.offsetHeight > 1 &&
      !each.closest('.st-key-lecture, .st-key-training-dock') &&
      (!each.matches(KINDS.block) || parseFloat(getComputedStyle(each).borderTopWidth) > 0) &&
      each.checkVisibility({ visibilityProperty: true })
  );
/** Is a piece of the page a caption? Without it one may stand alone below the words of a lecture. */
export const isCaption = (piece) => piece.querySelector(KINDS.caption) !== null;
/** Does the page still wait for something, or say so with an hourglass? Without it a hand-out may hold these words. */
export const isMeasuring = () =>
  main().querySelector('.al-news[data-awaits]') !== null ||
  [...document.querySelectorAll('[data-testid=stIconMaterial]')].some((each) => each.textContent.startsWith('hourglass'));
/** What stands in words without being one: icons by their names, links to headings, what is written for tests. */
export const NO_WORDS = '[data-testid=stIconMaterial], [data-testid=stHeaderActionElements], [translate=no][role=img], .strut';
/** The element of which a document is written. Without it that is all of the page. */
export const main = () => document.querySelector('[data-testid=stMainBlockContainer]') ?? page();
