// The heads that a page's sentences name: pointing at "head 0.2" outlines it in the grid of heads, and pointing at it there
// marks the words that speak of it.

import { light, lit } from '../kit/link.js';
import { standing } from '../kit/mount.js';
import { page, sentences } from '../kit/streamlit_private.js';
import { highlight, leave, span, texts, under } from './words.js';

const NAMED = 'al-heads'; // of the highlights, in glossary.css
const LIT = 'al-lit';
const LIST = /\bheads? \d+\.\d+(?:(?:, | and | or )\d+\.\d+)*/gi;

export class NamedHeads {
  constructor() {
    this.found = []; // [{ name, range }]
    this.name = null; // the head that is pointed at
    this.silence = lit(this, (name) => this.mark(name));
  }

  /** Find the heads that sentences and titles name and that stand in a grid, each under a name of its own. */
  read() {
    const names = standing().flatMap(({ name, host }) => (name === 'head_grid' && host.__grid?.data ? host.__grid.panels.map((panel) => panel.name) : []));
    const once = new Set(names.filter((name) => names.indexOf(name) === names.lastIndexOf(name)));
    this.found = [];
    for (const element of [...page().querySelectorAll('h1'), ...sentences()]) {
      const nodes = texts(element, '.katex, code, a, [role=img]');
      const whole = nodes.map((node) => node.data).join('');
      for (const list of whole.matchAll(LIST)) {
        for (const [at, match] of [...list[0].matchAll(/\d+\.\d+/g)].entries()) {
          // The word before the first of them belongs to it.
          const start = at === 0 ? list.index : list.index + match.index;
          const end = list.index + match.index + match[0].length;
          if (once.has(match[0])) this.found.push({ name: match[0], range: span(nodes, start, end - start) });
        }
      }
    }
    highlight(NAMED, this.found.map(({ range }) => range));
  }

  /** Outline the head whose name is under a pointer; none where there is no name. */
  point(event) {
    const name = under(this.found, event)?.name ?? null;
    if (name === this.name) return;
    light((this.name = name), this);
    this.mark(name);
  }

  mark(name) {
    highlight(LIT, this.found.filter((each) => each.name === name).map(({ range }) => range));
  }

  dispose() {
    this.silence();
    leave(NAMED);
    leave(LIT);
  }
}
