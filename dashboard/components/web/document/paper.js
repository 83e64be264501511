// A hand-out on paper: every document is drawn once, behind the page that is read, and kept as it then stands. A question
// has a page of its own, with room for an answer, before the page that answers it; what words mean stands on the last page.

import { fromBase64 } from '../kit/base64.js';
import { unpack } from '../kit/payload.js';
import { element } from '../prediction/element.js';
import { KINDS } from '../prediction/kinds.js';
import { Reader } from './reader.js';

const PATIENCE = 15000; // ms in which all of a document is drawn
const PAGE = (1100 * 273) / 186; // pixels of a page's height, where a sheet has 1,100 across its 186 mm
const LEAST = 0.72; // of its size, at which a sheet can still be read
const EMPTY = 'data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAA=';
const LEADS = '.part:has(> .heading, > .markdown strong)'; // words that say what comes below them
const PRESSED = 'button:not(:has(canvas)), select, input[type=range], .takeaway, .modebar-container, .al-origin'; // what nobody presses on paper

/**
 * Keep the page from being taken for loaded, until what this returns is called: a browser that prints a page as soon as it
 * is loaded (chromium --print-to-pdf) waits for it. A picture that has come is asked for again.
 */
export function holdLoading() {
  let over = false;
  const picture = element('img', { alt: '', hidden: true, src: EMPTY });
  picture.addEventListener('load', () => (over ? picture.remove() : (picture.src = EMPTY)));
  document.body.append(picture);
  return () => (over = true);
}

export class Paper {
  constructor(host, styles) {
    Object.assign(this, { host, styles });
  }

  /** Draw all documents, one after the other. */
  async draw(documents) {
    for (const [number, document_] of documents.entries()) {
      const sheet = element('article', { className: 'sheet', id: `sheet-${number + 1}` });
      this.host.append(sheet);
      const { parts, message } = withoutQuestion(document_.parts);
      const asked = message && unpack(fromBase64(message));
      const reader = new Reader(sheet, this.styles, { themed: sheet, fired: () => {}, within: `#sheet-${number + 1}` });
      reader.show({ ...document_, parts, question: '' });
      await drawn(sheet);
      unroll(sheet);
      await drawn(sheet); // what is scrolled no more draws itself anew
      bringTogether(sheet, document_.lecture?.look, sheet.querySelector('.lecture'));
      const kept = frozen(sheet);
      const place = element('p', { className: 'view', textContent: [kept.querySelector('.lecture .place')?.textContent, document_.link].filter(Boolean).join(' · ') });
      kept.querySelector('.lecture .place')?.remove();
      kept.prepend(...[place, answer(asked?.header)].filter(Boolean));
      if (asked) kept.prepend(this.question(asked, place.cloneNode(true)));
      kept.append(...[notes(document_)].filter(Boolean));
      sheet.replaceWith(kept);
      shrink(kept);
      reader.end();
    }
    const words = terms(documents.flatMap((each) => each.terms ?? []));
    if (words) this.host.append(words);
    this.host.dataset.whole = '';
  }

  /** The question, and empty what one answers it by. */
  question({ header, body }, place) {
    const field = new KINDS[header.kind]({ ...header, weights: new Float32Array(body.buffer, body.byteOffset, body.byteLength >> 2) }, () => {});
    for (const hint of field.host.querySelectorAll('.hint')) hint.remove();
    const outer = element('div');
    const inner = element('section', { className: 'al-prediction' }, element('h2', { textContent: header.ask }), field.host);
    outer.attachShadow({ mode: 'open' }).append(element('style', { textContent: `${this.styles.prediction} .drawn { display: none; }` }), inner);
    return element('section', { className: 'asked' }, place, outer);
  }
}

/** Parts without the question that stands among them, and its message; empty where nothing is asked. */
function withoutQuestion(parts) {
  let message = '';
  const kept = (all) =>
    all.flatMap((part) => {
      if (part.name === 'prediction') {
        message = part.message;
        return [];
      }
      if (part.parts) return [{ ...part, parts: kept(part.parts) }];
      if (part.columns) return [{ ...part, columns: part.columns.map((column) => ({ ...column, parts: kept(column.parts) })) }];
      return [part];
    });
  return { parts: kept(parts), message };
}

/** Wait until a document is drawn: nothing in it is busy, and two frames have passed. */
async function drawn(host) {
  const end = performance.now() + PATIENCE;
  const pause = () => new Promise((resolve) => setTimeout(resolve, 20));
  await pause();
  while (host.querySelector('[aria-busy=true]') && performance.now() < end) await pause();
  await pause();
  await pause();
}

/** What is a little too high for a page is drawn smaller; what is far too high takes several pages. */
function shrink(sheet) {
  const places = [...sheet.children].filter((each) => each.className !== 'asked').map((each) => each.getBoundingClientRect());
  const height = Math.max(...places.map(({ bottom }) => bottom)) - Math.min(...places.map(({ top }) => top));
  const fits = (0.98 * PAGE) / height;
  if (fits < 1 && fits >= LEAST) sheet.style.zoom = fits;
}

/** What scrolls has nobody on paper to scroll it: what is too high is shown whole, what is too wide is drawn smaller. */
function unroll(host) {
  const rolls = (how) => ['auto', 'scroll'].includes(how);
  for (const each of below(host)) {
    const { overflowX, overflowY } = getComputedStyle(each);
    const wide = rolls(overflowX) && each.clientWidth ? each.scrollWidth / each.clientWidth : 1;
    if (wide > 1.01) each.style.zoom = 1 / wide;
    if (rolls(overflowX) || rolls(overflowY)) Object.assign(each.style, { maxHeight: 'none', overflow: 'visible' });
  }
}

/** Every HTML element below a node, those of shadow roots among them. */
function* below(node) {
  for (const each of node.children) {
    if (!(each instanceof HTMLElement)) continue;
    yield each;
    if (each.shadowRoot) yield* below(each.shadowRoot);
    yield* below(each);
  }
}

/** Put what a step marks, with the words that lead to it and its caption, right below its words and the page's title. */
function bringTogether(sheet, look, words) {
  const marked = look && sheet.querySelector(`.st-key-${CSS.escape(look)}`);
  const top = marked && [...sheet.children].find((each) => each.contains(marked));
  if (!top || !words) return;
  const title = [...sheet.children].find((each) => each.querySelector('h1'));
  const said = top.nextElementSibling;
  const led = [];
  for (let each = top.previousElementSibling; each?.matches(LEADS) && each !== title; each = each.previousElementSibling) led.unshift(each);
  if (title !== top) (title ?? words).after(...led, top, ...(said?.querySelector(':scope > .caption') ? [said] : []));
}

/** A copy that needs no script: what was painted is in it, and what one would press is not. */
function frozen(node) {
  if (node.matches?.(PRESSED)) return '';
  const copy = node.cloneNode(false);
  if (node instanceof HTMLElement && getComputedStyle(node).position === 'sticky') copy.style.position = 'static';
  copy.removeAttribute?.('data-hint'); // what to point at
  if (node instanceof HTMLCanvasElement && node.width && node.height) copy.getContext('2d').drawImage(node, 0, 0);
  if (node.shadowRoot) copy.attachShadow({ mode: 'open' }).append(...[...node.shadowRoot.childNodes].map(frozen));
  if (node.childNodes.length) copy.append(...[...node.childNodes].map(frozen));
  return copy;
}

/** The right answer in words, where the picture does not show it. */
function answer(asked) {
  if (!asked || !('truth' in asked) || !['choice', 'number'].includes(asked.kind)) return null;
  const truth = asked.kind === 'choice' ? asked.choices[asked.truth] : asked.truth.toFixed(asked.digits).replace('-', '−');
  return element('p', { className: 'answer', textContent: `The answer to the question before: ${truth}.` });
}

/** The terms of all documents, each once, by name: [name, meaning]. */
function terms(all) {
  const found = [...new Map(all)].toSorted(([one], [other]) => one.localeCompare(other));
  if (!found.length) return null;
  const said = found.map(([name, meaning]) => element('p', {}, element('b', { textContent: name }), `: ${meaning}.`));
  return element('article', { className: 'sheet terms' }, element('h2', { textContent: 'Words' }), ...said);
}

function notes({ notes: own, lecture }) {
  const said = [own, lecture?.notes].filter(Boolean).join('\n\n');
  return said ? element('section', { className: 'notes' }, element('h3', { textContent: 'Notes' }), element('p', { textContent: said })) : null;
}
