// A page writes itself down: a document holds what stands in it, in that order, and where it comes from. Python is asked
// for nothing: words and tables are read from the page, and a figure is the message that Python sent for it.
//
// A document is {version, title, link, made, software, makers, theme, lecture, question, asks, kind, covered, terms, parts}, in a
// file also {notes}; that of a lecture holds the presenter's notes only where they are asked for. A part is one of
//
//   {words, kind}                       HTML; `kind` is heading, markdown, caption, alert, html, metric or table
//   {parts, key}                        a block of parts, below each other
//   {columns: [{width, parts}], key}    such blocks, beside each other; `width` in pixels
//   {name, key, template, message}      a component, its message as base64
//
// What Python writes (dashboard/notebook/) has two more fields of a component: {chooses: true}, where a click chooses something
// that another part depends on; and of that part {choice: {of, messages}}: of which key, and its message for each choice,
// compressed by gzip, as base64. A widget asks Python for them and has none.

import { toBase64 } from '../kit/base64.js';
import { standing } from '../kit/mount.js';
import { pack, unpack } from '../kit/payload.js';
import { KINDS, NO_WORDS, isMeasuring, isSettled, main, placeOf } from '../kit/streamlit_private.js';

export const VERSION = 1;
/** The components that show something; the others are buttons and helpers of the page. */
export const PICTURES = ['arcs', 'film', 'glances', 'head_grid', 'painter', 'passage', 'plot', 'prediction', 'sheet'];
/** What belongs to whoever gives the lecture, not to what is seen: the strip, notices, the state of the server. */
const LEFT_OUT = ['lecture', 'notices', 'health'];
/** What a reader has brought along, and nobody else is to see: neither its words nor its title leave the page. */
const PRIVATE = 'private';
const ADDRESS = 'attention-lab-address'; // where links lead, if not here (python -m dashboard hand-out)
const UNKNOWN = 'this version of Streamlit makes its pages of parts that are not known here';
const texts = new WeakMap(); // message -> its base64

/** Does all of the page stand: nothing is being drawn, every figure is there? */
export const isReady = () => isSettled() && !main().querySelector(`[aria-busy=true]:not(${KINDS.folded} *)`);

/** Is nothing still being measured, either? Who follows sees what is there; a file is to hold all. */
export const isWhole = () => isReady() && !isMeasuring();

/**
 * The document of this page. Of a page that is covered by a question (prediction.js) only what can be seen is written, and
 * no answer; `whole`, all of it is, and whoever reads it is asked. With `notes`, the presenter's are in it. Throws where this version of Streamlit makes its pages of
 * other things.
 */
export function write({ whole = false, notes = false } = {}) {
  const page = main();
  if (!page.querySelector(KINDS.element)) throw new Error(UNKNOWN);
  const question = page.querySelector('.st-key-prediction') ? asked() : null;
  const covered = !whole && question !== null && document.documentElement.dataset.predicted !== question;
  const there = placed();
  const parts = partsOf(page, { there, covered, until: podium().until ?? '', stopped: false }) ?? [];
  const origin = read();
  return {
    version: VERSION,
    title: (!covered && page.querySelector(`h1:not(.st-key-${PRIVATE} *)`)?.textContent.trim()) || document.title,
    link: `${sessionStorage.getItem(ADDRESS) ?? location.origin}${location.pathname}${origin.query ? `?${origin.query}` : ''}`,
    made: new Date().toISOString(),
    software: origin.software,
    makers: origin.makers,
    theme: theme(standing()[0]?.host ?? page),
    lecture: lecture(covered, notes),
    question: question ?? '',
    asks: question ? header().ask : '',
    kind: question ? kind() : '',
    covered,
    terms: covered ? [] : terms(),
    parts,
  };
}

/** The terms in the page's sentences and what they mean: [name, meaning], by name. */
function terms() {
  const glossary = document.querySelector('.al-glossary')?.__glossary;
  glossary?.read(); // it waits for a page that stands still, and this one does
  return (glossary?.found ?? []).map(({ name, meaning }) => [name, meaning]).toSorted(([one], [other]) => one.localeCompare(other));
}

/** Where the page's numbers come from, as Python wrote it last (components/origin.py). */
function read() {
  const all = [...document.querySelectorAll('.al-origin')].sort((one, other) => other.dataset.at - one.dataset.at);
  return all.length ? JSON.parse(all[0].dataset.origin) : { query: '', makers: [], software: 'Attention Lab' };
}

/** The id of the question that covers this page. */
const asked = () => standing().find(({ name }) => name === 'prediction')?.host.dataset.question ?? '';

/** What Python says of it. */
const header = () => unpack(standing().find(({ name }) => name === 'prediction').message.slice()).header;

/** Which answers it takes, as a room counts them (server/rooms/votes.py): "bars:8". */
function kind() {
  const { kind: name, ...has } = header();
  const sizes = { choice: () => has.choices.length, bars: () => has.labels.length, cells: () => `${has.rows.length}x${has.columns.length}` };
  return name in sizes ? `${name}:${sizes[name]()}` : name;
}

/** What stands in which place of the page. */
const placed = () =>
  new Map(standing().filter(({ name }) => PICTURES.includes(name)).map((each) => [placeOf(each.host), each]));

/** The parts below an element; null where there are none. What a question covers, or a step does not show yet, is not written. */
function partsOf(element, how) {
  const parts = [];
  for (const child of element.children) {
    if (how.stopped) break;
    const part = partOf(child, how);
    if (part) parts.push(...(Array.isArray(part) ? part : [part]));
  }
  return parts.length ? parts : null;
}

function partOf(element, how) {
  const is = (kind) => element.matches(KINDS[kind]);
  const key = keyOf(element);
  if ([...LEFT_OUT, PRIVATE].includes(key) || (key.startsWith('control-') && !element.checkVisibility()) || is('folded') || is('widget')) return null;
  if (is('component')) return component(element, how);
  if (is('columns')) return columns(element, key, how);
  if (is('html')) return html(element);
  if (is('table')) return words('table', table(element));
  if (is('metric')) return words('metric', [...element.children].map((each) => `<span>${cleaned(each)}</span>`).join(' '));
  for (const kind of ['heading', 'caption', 'alert', 'markdown']) if (is(kind)) return words(kind, cleaned(element));
  const parts = partsOf(element, how);
  if (key === 'prediction' ? how.covered : key && key === how.until) how.stopped = true;
  return parts && key && is('block') ? { parts, key } : parts;
}

const keyOf = (element) => [...element.classList].find((name) => name.startsWith('st-key-'))?.slice(7) ?? '';
const words = (kind, text) => (text.trim() ? { words: text.trim(), kind } : null);

function component(element, how) {
  const found = how.there.get(element);
  if (!found?.message) return null;
  const key = keyOf(element.closest(KINDS.element) ?? element);
  return { name: found.name, key, template: found.template, message: base64(how.covered ? withoutAnswer(found.message) : found.message) };
}

function columns(element, key, how) {
  const beside = [...element.children].map((child) => ({ width: child.clientWidth, parts: partsOf(child, how) }));
  const kept = beside.filter(({ parts }) => parts);
  return kept.length > 1 ? { columns: kept, key } : (kept[0]?.parts ?? null);
}

/** Markup of our own, drawn by st.html. What says where the page comes from is written elsewhere. */
function html(element) {
  if (element.querySelector('.al-origin')) return null;
  return words('html', element.innerHTML);
}

/** A table that Streamlit paints on a canvas, as it says it to screen readers: the rows that are in sight. */
function table(element) {
  const grid = element.querySelector('[role=grid]');
  if (!grid) return '';
  const row = (each, tag) => `<tr>${[...each.querySelectorAll('[role=columnheader], [role=gridcell]')].map((cell) => `<${tag}>${escaped(rounded(cell.textContent))}</${tag}>`).join('')}</tr>`;
  const [head, ...rows] = grid.querySelectorAll('[role=row]');
  if (!head) return '';
  const more = Number(grid.getAttribute('aria-rowcount')) - 1 - rows.length;
  const note = more > 0 ? `<caption>The first ${rows.length} rows; there are ${more} more.</caption>` : '';
  return `<table>${note}<thead>${row(head, 'th')}</thead><tbody>${rows.map((each) => row(each, 'td')).join('')}</tbody></table>`;
}

/** A number as the tables write it (parts/tables.py): three digits, unless it is whole. */
const rounded = (text) => (/^-?\d+\.\d{4,}$/.test(text) ? Number(text).toFixed(3) : text);

/** Markup of Streamlit's words as plain HTML: formulas as MathML, no icons, buttons or classes. */
function cleaned(element) {
  const copy = element.cloneNode(true);
  for (const formula of copy.querySelectorAll('.katex-display, .katex')) {
    const math = formula.querySelector('math');
    if (math) formula.replaceWith(math);
  }
  for (const none of copy.querySelectorAll(`button, svg, style, script, ${NO_WORDS}`)) none.remove();
  for (const each of copy.querySelectorAll('*')) plain(each);
  return copy.innerHTML;
}

const KEPT = ['href', 'style', 'colspan', 'rowspan', 'xmlns', 'display'];

function plain(element) {
  for (const { name } of [...element.attributes]) {
    if (!KEPT.includes(name) && !element.closest('math')) element.removeAttribute(name);
  }
  if (element.hasAttribute('href')) element.setAttribute('href', element.href ?? element.getAttribute('href'));
  element.querySelector(':scope > annotation')?.remove(); // the formula once more, in TeX
}

/** What a lecture's step is, if there is one (podium.js). */
const podium = () => standing().find(({ name }) => name === 'podium')?.host.__podium ?? {};

/** The words of the lecture's step, as its strip shows them. */
function lecture(covered, withNotes) {
  const strip = document.querySelector('.st-key-lecture');
  if (!strip) return null;
  const of = (key) => strip.querySelector(`.st-key-${key} ${KINDS.markdown}`);
  const { presenter: told, look = '' } = podium();
  if (!told) return null;
  const { lecture: title, at, count, minutes, notes } = told;
  const said = { title, at, count, minutes, notes: withNotes ? notes : '', look, step: covered ? '' : told.title };
  return { ...said, words: covered || !of('lecture-words') ? '' : cleaned(of('lecture-words')) };
}

/** What the theme is called in the style sheets of the components, with the colours it has now. */
function theme(element) {
  const style = getComputedStyle(element);
  const names = [...style].filter((name) => name.startsWith('--st-') && !/dataframe|chart|heading-font|widget/.test(name));
  return Object.fromEntries(names.map((name) => [name, style.getPropertyValue(name).trim()]));
}

/** A question without its answer: its header alone, and in it no truth (dashboard/lectures/questions.py). */
function withoutAnswer(message) {
  const { header } = unpack(message.slice());
  return pack({ ...header, truth: null });
}

function base64(message) {
  if (!texts.has(message)) texts.set(message, toBase64(message));
  return texts.get(message);
}

const escaped = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
