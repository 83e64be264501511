// Shows a document (see write.js) as the page stood: the same words, and the same components on the same messages.
// Nothing is asked of Python: what a component fires goes nowhere, but where another part depends on it.

import arcs from '../arcs/arcs.js';
import film from '../film/film.js';
import glances from '../glances/glances.js';
import head_grid from '../head_grid/head_grid.js';
import { fromBase64 } from '../kit/base64.js';
import { unpacked } from '../kit/gzip.js';
import { unpack } from '../kit/payload.js';
import { HTML } from '../kit/streamlit_private.js';
import painter from '../painter/painter.js';
import passage from '../passage/passage.js';
import plot from '../plot/plot.js';
import { element } from '../prediction/element.js';
import prediction from '../prediction/prediction.js';
import sheet from '../sheet/sheet.js';
import { VERSION } from './write.js';

const COMPONENTS = { arcs, film, glances, head_grid, painter, passage, plot, prediction, sheet };
const [EVERY, LOOKS] = [200, 8]; // ms between two looks at where what is marked stands; so many once nothing is drawn
const AIR = 12; // pixels between a lecture's words, where they stay in sight, and what is brought below them
const PATIENCE = 15000; // ms in which all is drawn
const IN_THE_OPEN = ['plot', 'sheet']; // the others have a shadow root, as in the dashboard

export class Reader {
  /**
   * `styles` are the style sheets of the components, by name; `themed` gets the colours of a document. `fired(key, value)`
   * is told what a component fires; without it the parts that depend on that component show what they hold for the value.
   * What is marked or covered is so `within` a selector: other documents may stand in the page.
   */
  constructor(host, styles, { themed = document.documentElement, fired = (key, value) => this.follow(key, value), within = '' } = {}) {
    this.within = within;
    this.ends = []; // what takes away the components that were drawn
    this.host = host;
    this.styles = styles;
    this.themed = themed;
    this.fired = fired;
    this.places = new Map(); // name and key of a component -> its place, which the next document may use again
    for (const by of ['wheel', 'touchmove', 'pointerdown', 'keydown'])
      window.addEventListener(by, () => clearInterval(this.bringing), { capture: true, passive: true });
  }

  /** Show a document in place of the one before: a component that is in both stays, and is drawn with the new message. */
  show(document_) {
    if (document_.version !== VERSION) throw new Error('This document was written by another version of Attention Lab. Reload the page.');
    for (const [name, value] of Object.entries(document_.theme)) this.themed.style.setProperty(name, value);
    const before = this.places;
    this.places = new Map();
    const parts = this.parts(document_.parts, before);
    const question = document_.covered ? '' : document_.question; // what is covered for all is not here at all
    this.host.replaceChildren(
      element('style', { textContent: rules(document_, question, this.within) }),
      origin(document_),
      ...lecture(document_.lecture),
      ...parts
    );
    this.update();
  }

  parts(parts, before) {
    return parts.map((part) => element('div', { className: 'part' }, this.part(part, before)));
  }

  part(part, before) {
    if (part.words) return words(part);
    if (part.parts) return element('div', { className: `block ${keyClass(part.key)}` }, ...this.parts(part.parts, before));
    if (part.columns) {
      const beside = part.columns.map(({ width, parts }) => {
        const column = element('div', { className: 'column' }, ...this.parts(parts, before));
        column.style.flex = `${width} 1 ${Math.min(width, 280)}px`;
        return column;
      });
      return element('div', { className: `columns ${keyClass(part.key)}` }, ...beside);
    }
    return this.component(part, before);
  }

  component({ name, key, template, message, chooses = false, choice = null }, before) {
    if (!(name in COMPONENTS)) throw new Error(`This document has a “${name}”, which this reader does not know. Reload the page.`);
    const id = `${name} ${key}`;
    const place = before.get(id) ?? this.place(name, chooses ? template : withoutClicks(template), Boolean(choice));
    place.outer.className = `component ${keyClass(key)}`;
    Object.assign(place, { key, choice, message: fromBase64(message) });
    this.places.set(id, place);
    return place.outer;
  }

  /** Where a component is to stand, with the markup that Python gave it; what changes `says` what it shows. */
  place(name, template, says) {
    const outer = element('div');
    const inner = element('div', { innerHTML: template });
    const line = says ? element('p', { className: 'caption' }) : null;
    if (IN_THE_OPEN.includes(name)) outer.append(inner, ...(line ? [line] : []));
    else outer.attachShadow({ mode: 'open' }).append(element('style', { textContent: this.styles[name] ?? '' }), inner);
    return { outer, inner, line, name };
  }

  /** Show what the parts that depend on a component hold for its `value`; the last one asked for stays. */
  async follow(key, value) {
    for (const place of this.places.values()) {
      if (place.choice?.of !== key) continue;
      place.wanted = value;
      const message = await unpacked(place.choice.messages[value]);
      if (place.wanted === value) this.put(place.key, message);
    }
  }

  /** Show another message in the place of this key. */
  put(key, message) {
    for (const place of this.places.values()) {
      if (place.key === key) this.draw(Object.assign(place, { message }));
    }
  }

  /** Bring what a lecture's step marks into sight, once the figures above it have their heights; not after one has scrolled. */
  bring({ lecture: said }) {
    clearInterval(this.bringing);
    const end = performance.now() + PATIENCE;
    let looks = LOOKS; // not a time: a busy phone may do nothing for seconds
    this.bringing = setInterval(() => {
      const place = said?.look && this.host.querySelector(`.st-key-${CSS.escape(said.look)}`); // each document has its own
      looks = this.host.querySelector('[aria-busy=true]') ? LOOKS : looks - 1;
      if (!place || looks < 0 || performance.now() > end) return clearInterval(this.bringing);
      const words = this.host.querySelector('.lecture');
      if (words && getComputedStyle(words).position === 'sticky') place.style.scrollMarginTop = `${parseFloat(getComputedStyle(words).top) + words.offsetHeight + AIR}px`;
      place.scrollIntoView({ block: 'nearest', behavior: 'instant' });
    }, EVERY);
  }

  /** Let go of the components, once they stand in the page no more. */
  end() {
    for (const end of this.ends.splice(0)) end();
  }

  /** Draw the components, now that they stand in the page and have a width. */
  update() {
    for (const place of this.places.values()) this.draw(place);
  }

  draw({ name, key, inner, line, message }) {
    const fire = (_, value) => this.fired(key, value);
    this.ends.push(COMPONENTS[name]({ data: message, parentElement: inner, setTriggerValue: fire, setStateValue: () => {} }));
    if (line) line.textContent = unpack(message).header.alt;
  }
}

/** The markup of a component in which a click chooses nothing. */
const withoutClicks = (template) => template.replace(/; click [^"<.]*\./g, '.');

/** The class that Streamlit gives to what has a key: our components and styles know their places by it. */
const keyClass = (key) => (key ? `st-key-${key}` : '');

/** Words of the page. A sheet finds what it saves as Streamlit's HTML (kit/streamlit_private.js). */
const words = ({ words: markup, kind }) => element('div', { className: kind === 'html' ? HTML : kind, innerHTML: markup });

/** Where the numbers come from, for what is saved of a figure (takeaway/save.js). */
function origin({ link, software, makers }) {
  const said = { link, software, makers };
  return element('div', { className: 'al-origin', hidden: true, 'data-at': '0', 'data-origin': JSON.stringify(said) });
}

/** The lecture's words above the page. */
function lecture(said) {
  if (!said) return [];
  const place = element('p', { className: 'place', textContent: `${said.title}, step ${said.at} of ${said.count}` });
  const parts = [
    element('h2', { className: 'st-key-lecture-title', textContent: said.step }),
    element('div', { className: 'st-key-lecture-words', innerHTML: said.words }),
  ];
  const shown = said.step ? parts.map((each) => element('div', {}, each)) : []; // none while a question covers them
  return [element('section', { className: 'lecture', 'aria-label': 'Lecture' }, place, ...shown)];
}

/** What is marked, and what a question covers until it is answered here (as in dashboard/frame/guided/prediction.py). */
function rules({ lecture: said }, question, within) {
  const marked = said?.look ? `${within} .st-key-${CSS.escape(said.look)} { outline: 2px dashed var(--st-primary-color); outline-offset: 2px; }` : '';
  if (!question) return marked;
  const covered = `html:not([data-predicted="${CSS.escape(question)}"])`;
  return `${marked}
    ${covered} ${within} :has(> .st-key-prediction) ~ * { visibility: hidden; min-height: 0; max-height: 0; overflow: hidden; }
    ${covered} ${within} :is(:has(> .st-key-lecture-title), :has(> .st-key-lecture-words)) { display: none; }`;
}
