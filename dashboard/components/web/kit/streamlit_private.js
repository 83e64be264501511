// The private parts of Streamlit's page that our scripts lean on, all of them; those of our style sheet stand in frame/style.css.
//
// Streamlit promises only the class st-key-<key>. After an upgrade tests/browser/house/test_private_parts.py says by its
// names what is gone.

/** What st.html drew in the container of a key. Without it no table and no strip can be saved. */
export const drawnHtml = (key) => document.querySelector(`.st-key-${CSS.escape(key)} .${HTML}`);

/** The class of what st.html drew. Without it no table and no strip of a document can be saved. */
export const HTML = 'stHtml';

/** Is a rerun under way? Without it a file that is saved meanwhile may hold a figure of one view and the link of another. */
const UNDER_WAY = ['running', 'rerunRequested'].map((state) => `[data-test-script-state=${state}]`).join();
export const isRerunning = () => document.querySelector(UNDER_WAY) !== null;

/** Has the page its server, which will answer? Without it a chosen head waits for Python; a document has none. */
export const isConnected = () => document.querySelector('[data-test-connection-state=CONNECTED]') !== null;

/** The page beside the sidebar. Without it no term is explained, and no step of a lecture scrolls. */
export const page = () => document.querySelector('[data-testid=stMain]') ?? document.body;

/** Its sentences: captions, paragraphs and lists; no titles, labels of widgets, buttons or tables. */
export const sentences = () =>
  [...page().querySelectorAll('[data-testid=stCaptionContainer] p, [data-testid=stMarkdownContainer] :is(p, li)')].filter(
    (each) => !each.closest('button, label, summary, table, [data-testid=stWidgetLabel], [data-testid=stAlert]')
  );

/** What Streamlit puts around a component. Without it no document is written (document/write.js). */
const PLACE = '.stBidiComponent';

/** The place of a component, by the element that Streamlit gives to its script. */
export function placeOf(parentElement) {
  const root = parentElement.getRootNode();
  return (root instanceof ShadowRoot ? root.host : parentElement).closest(PLACE);
}

/** The button of a key in a page (web/presses), which may be a frame's. Without it no hand-out of a lecture is written. */
export const pressed = (page, key) =>
  page.querySelector(`.st-key-${CSS.escape(key)} [data-testid=stBidiComponentIsolated]`).shadowRoot.querySelector('button');

/**
 * Call `handler` when the page has its server again, having lost it. Returns what stops it. Without it the first press
 * after a restart of the server is lost.
 */
export function onReconnect(handler) {
  const app = document.querySelector('[data-testid=stApp]');
  let lost = false;
  const observer = new MutationObserver(() => {
    const connected = app.dataset.testConnectionState === 'CONNECTED';
    if (connected && lost) handler();
    lost = !connected;
  });
  observer.observe(app, { attributeFilter: ['data-test-connection-state'] });
  return () => observer.disconnect();
}

/** Does the page stand still: nothing is being drawn anew, nothing is pale, and every component has its data? */
export function isSettled() {
  const app = document.querySelector('[data-testid=stApp]');
  return (
    app?.dataset.testScriptState === 'notRunning' &&
    [...document.querySelectorAll('[data-testid=stElementContainer]')].every(
      (each) => each.dataset.stale !== 'true' && getComputedStyle(each).opacity === '1'
    ) &&
    [...document.querySelectorAll(PLACE)].every((each) => 'drawn' in each.dataset)
  );
}

/** The kinds of things of which Streamlit makes a page. A document keeps those that show something (document/write.js). */
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
/** What stands in words without being one: icons by their names, links to headings, what is written for tests. */
export const NO_WORDS = '[data-testid=stIconMaterial], [data-testid=stHeaderActionElements], [translate=no][role=img], .strut';
/** The element that holds the page, beside the sidebar, and scrolls. */
export const MAIN = '[data-testid=stMainBlockContainer]';
