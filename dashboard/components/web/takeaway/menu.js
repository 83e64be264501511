// "Take it with you": the button on a figure, and its menu of files. What makes the files is loaded when one is asked for.
//
// The popover is the browser's own; the keys of a menu, and its place beside the button, browsers do not give yet.

const FORMATS = [
  ['svg', 'SVG', 'the picture, as vectors'],
  ['png', 'PNG', 'the picture, at twice its size'],
  ['html', 'HTML', 'a page that needs no network'],
  ['csv', 'CSV', 'the numbers, a row each'],
  ['npz', 'NPZ', 'the numbers, for NumPy'],
];

const STYLE = `
.takeaway { display: inline-grid; place-content: center; width: 28px; height: 28px; margin: 0; padding: 0; border: 0;
  border-radius: var(--st-base-radius); background: var(--st-background-color); color: var(--st-text-color);
  cursor: pointer; }
.takeaway:hover, .takeaway[aria-expanded=true] { background: var(--st-secondary-background-color); }
.takeaway:focus-visible, .takeaway-menu button:focus-visible { outline: 2px solid var(--st-primary-color);
  outline-offset: -2px; }
.takeaway svg { width: 18px; height: 18px; }
.takeaway-menu { position: fixed; inset: auto; box-sizing: border-box; margin: 0; padding: 4px;
  border: 1px solid var(--st-border-color); border-radius: var(--st-base-radius); overflow: auto; max-height: 100vh;
  background: var(--st-background-color); color: var(--st-text-color); font: 400 16px/1.4 var(--st-font);
  box-shadow: 0 4px 16px rgb(0 0 0 / 25%); }
.takeaway-menu button { display: grid; grid-template-columns: 3.4em auto; width: 100%; margin: 0; padding: 6px 12px;
  border: 0; border-radius: calc(var(--st-base-radius) / 2); background: none; color: inherit; font: inherit;
  text-align: left; cursor: pointer; }
.takeaway-menu button:hover, .takeaway-menu button:focus { background: var(--st-secondary-background-color); }
.takeaway-menu b { font-weight: 600; }
.takeaway-menu p { max-width: 19em; margin: 0; padding: 6px 12px; }
.takeaway-menu p:empty { display: none; }
`;
const SAVE = 'M12 4v11m-5-5 5 5 5-5M5 20h14';

let sheet = null;

/**
 * Append the button to `place`. `figure` is asked when a file is:
 *
 *   name     the first word of the file's name
 *   alt()    what is to be seen, in a sentence
 *   makers() whose weights made it, [{run, step, weights}], or null where they are those of the page
 *   note()   what must be known of the numbers, or ''
 *   svg()    an SVG document, as text
 *   png()    a PNG file, as an ArrayBuffer
 *   body()   {markup, scripts, theme}: what a page shows of it, the scripts being texts, and the theme it was drawn for
 *   series() its numbers, see series.js
 *
 * Any of the last four may be a promise.
 */
export function menu(place, figure) {
  const root = place.getRootNode();
  sheet ??= styled();
  // What is no longer in the page has no root that takes a style sheet.
  if (root.adoptedStyleSheets?.includes(sheet) === false) root.adoptedStyleSheets = [...root.adoptedStyleSheets, sheet];
  const button = element('button', { type: 'button', class: 'takeaway', 'aria-haspopup': 'menu', 'aria-expanded': 'false' });
  button.setAttribute('aria-label', `Save ${figure.name}`);
  button.title = 'Save picture or numbers';
  button.innerHTML =
    `<svg viewBox="0 0 24 24" aria-hidden="true"><path d="${SAVE}" fill="none" stroke="currentColor" stroke-width="2"/></svg>`;
  let list = null;
  button.addEventListener('click', (event) => {
    event.stopPropagation();
    list ??= build(button, figure);
    open(list, button);
  });
  button.addEventListener('keydown', (event) => {
    if (event.key === 'ArrowDown') button.click();
    if (['ArrowDown', 'Enter', ' '].includes(event.key)) event.stopPropagation(); // not for the figure below
    if (event.key === 'ArrowDown') event.preventDefault();
  });
  place.append(button);
  return button;
}

function styled() {
  const made = new CSSStyleSheet();
  made.replaceSync(STYLE);
  return made;
}

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

/** The menu (WAI-ARIA's menu button pattern). A popover stands above the page: nothing clips it. */
function build(button, figure) {
  const said = element('p', { role: 'status' });
  const items = FORMATS.map(([format, letters, words]) => {
    const item = element('button', { type: 'button', role: 'menuitem', tabindex: '-1' });
    item.append(element('b', {}, letters), words);
    item.addEventListener('click', async (event) => {
      event.stopPropagation();
      said.textContent = '';
      try {
        const { save } = await import('./save.js');
        await save(figure, format, button);
        list.hidePopover();
      } catch (error) {
        said.textContent = `This could not be saved: ${error?.message ?? error}.`;
      }
    });
    return item;
  });
  const choices = element('div', { role: 'menu', 'aria-label': `Save ${figure.name} as` }, ...items);
  const list = element('div', { popover: 'auto', class: 'takeaway-menu' }, choices, said);
  list.addEventListener('keydown', (event) => {
    event.stopPropagation();
    const at = items.indexOf(list.getRootNode().activeElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: -1 }[event.key];
    if (event.key === 'Escape') list.hidePopover();
    if (event.key === 'Escape') button.focus();
    if (event.key === 'Tab') list.hidePopover();
    if (to === undefined) return;
    items.at(to % items.length).focus();
    event.preventDefault();
  });
  list.addEventListener('toggle', ({ newState }) => button.setAttribute('aria-expanded', newState === 'open'));
  list.addEventListener('click', (event) => event.stopPropagation());
  button.after(list);
  return list;
}

/** Show the menu beside its button, and keep it there while the page moves; without its button in the window it closes. */
function open(list, button) {
  if (list.matches(':popover-open')) return list.hidePopover();
  list.querySelector('p').textContent = '';
  list.showPopover();
  place(list, button);
  list.querySelector('[role=menuitem]').focus();
  const closed = new AbortController();
  const { signal } = closed;
  const follow = ({ target }) => {
    if (!list.isConnected) return closed.abort();
    if (target instanceof Node && list.contains(target)) return; // its own scrolling, in a low window
    const { top, bottom } = button.getBoundingClientRect();
    if (bottom > 0 && top < window.innerHeight) place(list, button);
    else list.hidePopover();
  };
  list.addEventListener('beforetoggle', () => closed.abort(), { signal });
  window.addEventListener('scroll', follow, { capture: true, signal });
  window.addEventListener('resize', follow, { signal });
}

/** Under the button, or above it where there is no room below, wholly within the window. */
function place(list, button) {
  const at = button.getBoundingClientRect();
  const { offsetWidth, offsetHeight } = list;
  const below = at.bottom + 4 + offsetHeight <= window.innerHeight;
  list.style.left = `${Math.max(4, Math.min(at.right, window.innerWidth - 4) - offsetWidth)}px`;
  list.style.top = `${Math.max(4, below ? at.bottom + 4 : at.top - 4 - offsetHeight)}px`;
}
