// Explains the terms of a page where each stands first in its sentences. They are marked with the browser's highlights: the
// elements belong to Streamlit, and are not touched. By keyboard, and to be heard, the same words stand behind a button.
// The heads that sentences name are marked in the same way (heads.js).

import { mounting } from '../../attention-lab.shared/kit/mount.js';
import { unpack } from '../../attention-lab.shared/kit/payload.js';
import { page, sentences } from '../../attention-lab.shared/kit/streamlit_private.js';
import { highlight, leave, span, texts, under } from '../../attention-lab.shared/glossary/words.js';
import { NamedHeads } from '../../attention-lab.shared/glossary/heads.js';

const MARK = 'al-terms'; // of the highlight, in glossary.css
const OTHERS = '.katex, code, a, strong, [role=img]'; // no formula, no code, no link, nothing bold, which is a title
const SETTLED = 250; // ms without a change after which a page is read

export default mounting('glossary', (root) => new Glossary(root));

class Glossary {
  constructor(root) {
    this.host = root.querySelector('.al-glossary');
    this.button = this.host.querySelector('button');
    this.list = this.host.querySelector('dl');
    this.card = this.host.querySelector('.al-meaning');
    this.terms = [];
    this.found = []; // [{ name, meaning, range }], in the page's order
    this.heads = new NamedHeads();
    this.host.__glossary = this; // for a hand-out (document/write.js), and for tests
    this.over = new AbortController();
    const { signal } = this.over;
    this.observer = new MutationObserver((changes) => changes.every(({ target }) => this.host.contains(target)) || this.later());
    this.observer.observe(page(), { childList: true, subtree: true, characterData: true });
    document.addEventListener('attention-lab-drawn', () => this.later(), { signal }); // a grid of heads may have come
    document.addEventListener('pointermove', (event) => event.pointerType === 'mouse' && this.point(event), { signal });
    document.addEventListener('click', (event) => this.tap(event), { signal });
    document.addEventListener('keydown', (event) => event.key === 'Escape' && this.show(null), { signal });
    document.addEventListener('scroll', () => this.show(null), { signal, capture: true, passive: true });
  }

  update(message) {
    this.terms = unpack(message.slice()).header.terms;
    this.pattern = new RegExp(this.terms.map(([, form]) => `(${form})`).join('|'), 'giu');
    this.later();
  }

  later() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.read(), SETTLED);
  }

  /** Find each term where it stands first. */
  read() {
    if (!this.host.isConnected) return;
    this.heads.read();
    const found = new Map();
    for (const sentence of sentences()) {
      const nodes = texts(sentence, OTHERS);
      const whole = nodes.map((node) => node.data).join('');
      for (const match of whole.matchAll(this.pattern)) {
        const [name, , meaning] = this.terms[match.slice(1).findIndex((group) => group !== undefined)];
        if (!found.has(name)) found.set(name, { name, meaning, range: span(nodes, match.index, match[0].length) });
      }
    }
    const before = this.found.map(({ name }) => name).join();
    this.found = [...found.values()];
    highlight(MARK, this.found.map(({ range }) => range));
    if (before === this.found.map(({ name }) => name).join()) return; // a list that is open stays as it is
    this.button.hidden = !this.found.length;
    const sorted = this.found.toSorted((one, other) => one.name.localeCompare(other.name));
    this.list.replaceChildren(...sorted.flatMap(({ name, meaning }) => [element('dt', name), element('dd', `${meaning}.`)]));
  }

  /** The term under the pointer. */
  at(event) {
    return this.host.contains(event.target) ? null : (under(this.found, event) ?? null);
  }

  tap(event) {
    this.heads.point(event);
    this.show(this.at(event));
  }

  point(event) {
    this.heads.point(event);
    const found = this.at(event);
    if (found || this.card.matches(':popover-open')) this.show(found);
  }

  /** Explain a term beside it; null explains none. */
  show(found) {
    if (!found) {
      if (this.card.matches(':popover-open')) this.card.hidePopover();
      this.shown = null;
      return;
    }
    if (this.shown === found.name) return;
    this.shown = found.name;
    this.card.replaceChildren(element('b', found.name), `: ${found.meaning}.`);
    if (!this.card.matches(':popover-open')) this.card.showPopover();
    const word = found.range.getBoundingClientRect();
    const { offsetWidth: wide, offsetHeight: high } = this.card;
    const left = Math.max(8, Math.min(word.left, innerWidth - wide - 8));
    const top = word.bottom + high + 12 < innerHeight ? word.bottom + 4 : word.top - high - 4;
    Object.assign(this.card.style, { left: `${left}px`, top: `${top}px` });
  }

  dispose() {
    this.over.abort();
    this.observer.disconnect();
    clearTimeout(this.timer);
    this.heads.dispose();
    leave(MARK);
  }
}

function element(tag, text) {
  const made = document.createElement(tag);
  made.textContent = text;
  return made;
}
