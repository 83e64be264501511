// The private parts of Streamlit's page that our scripts lean on, all of them; those of our style sheet stand in theme.css.
//
// Streamlit promises only the class st-key-<key>. After an upgrade tests/browser/house/test_private_parts.py says by its
// names what is gone.

/** What st.html drew in the container of a key. Without it no table and no strip can be saved. */
export const drawnHtml = (key) => document.querySelector(`.st-key-${CSS.escape(key)} .stHtml`);

/** Is a rerun under way? Without it a file that is saved meanwhile may hold a figure of one view and the link of another. */
export const isRerunning = () => document.querySelector('[data-test-script-state=running]') !== null;

/** The page beside the sidebar. Without it no term is explained, and no step of a lecture scrolls. */
export const page = () => document.querySelector('[data-testid=stMain]') ?? document.body;

/** Its sentences: captions, paragraphs and lists; no titles, labels of widgets, buttons or tables. */
export const sentences = () =>
  [...page().querySelectorAll('[data-testid=stCaptionContainer] p, [data-testid=stMarkdownContainer] :is(p, li)')].filter(
    (each) => !each.closest('button, label, summary, table, [data-testid=stWidgetLabel], [data-testid=stAlert]')
  );
