// A text, word by word, on one canvas, and a second one above it for the chosen word and what follows the pointer.

import { Canvases } from '../../attention-lab.shared/canvas/canvases.js';
import { mounting } from '../../attention-lab.shared/kit/mount.js';
import { unpack } from '../../attention-lab.shared/kit/payload.js';
import { beside, boxOf, layOut, pick } from '../../attention-lab.shared/passage/layout.js';
import { hold, mark, paint } from '../../attention-lab.shared/passage/paint.js';

const STEPS = { ArrowLeft: -1, ArrowRight: 1 };
const LINES = { ArrowUp: -1, ArrowDown: 1 };
const SETTLE = 120; // ms between the last arrow key and the message to Python
const TRUST = 1500; // ms for which a choice made here stands against an older one still coming from Python

export default mounting((root) => new Passage(root));

class Passage extends Canvases {
  constructor(root) {
    super(root, '.passage', '.scroller');
    this.chosen = null;
    this.chosenAt = -Infinity;
    this.host.addEventListener('pointermove', (event) => this.hover(this.under(event)));
    this.host.addEventListener('pointerleave', () => this.hover(null));
    this.host.addEventListener('click', (event) => this.choose(this.under(event), 0));
    this.around.addEventListener('scroll', () => this.redraw());
    this.host.addEventListener('keydown', (event) => this.key(event));
    this.host.__passage = this; // for tests: data, layout, chosen, cell
  }

  update(message, fire) {
    if (!this.news(message, fire)) return this.settle();
    this.data = decode(this.message);
    const { alt, tokens, height, follow } = this.data;
    this.host.setAttribute('aria-label', alt);
    this.around.style.maxHeight = `${height}px`;
    if (this.cell >= tokens.length) this.cell = null;
    this.settle();
    this.arrange();
    if (follow) this.around.scrollTop = this.around.scrollHeight;
    else if (this.chosen !== null) this.reveal(this.chosen);
    this.host.dataset.words = tokens.length;
    this.offer(() => import('../../attention-lab.shared/passage/takeaway.js'), () => this.chosen, () => this.data.makers);
  }

  /** Take the choice that Python says, unless one made here may still be on its way to it. */
  settle() {
    clearTimeout(this.settling);
    const wait = this.chosenAt + TRUST - performance.now();
    if (this.data.chosen !== this.chosen && wait > 0) this.settling = setTimeout(() => this.settle(), wait);
    else this.show(this.data.chosen);
  }

  show(chosen) {
    this.chosen = chosen;
    this.host.dataset.chosen = chosen ?? '';
    this.redraw();
  }

  choose(index, delay) {
    if (index === null || index < this.data.first) return;
    this.chosenAt = performance.now();
    this.show(index);
    clearTimeout(this.telling);
    this.telling = setTimeout(() => this.fire('choose', index), delay);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || !this.data?.tokens.length) return;
    const { first, tokens } = this.data;
    const from = this.chosen ?? first;
    let to;
    if (event.key in STEPS) to = from + STEPS[event.key];
    else if (event.key in LINES) to = beside(this.layout, from, LINES[event.key]);
    else if (event.key === 'Home') to = first;
    else if (event.key === 'End') to = tokens.length - 1;
    else return;
    to = Math.max(first, Math.min(tokens.length - 1, to));
    this.choose(to, SETTLE);
    this.reveal(to);
    this.say(sentence(this.data, to));
    event.preventDefault();
    event.stopPropagation();
  }

  /** Scroll as little as it takes to see a word. */
  reveal(index) {
    const box = this.layout && boxOf(this.layout, index);
    if (!box) return;
    const [top, bottom] = [(box.y - box.height) / this.ratio, (box.y + 1.5 * box.height) / this.ratio];
    if (top < this.around.scrollTop) this.around.scrollTop = top;
    else if (bottom > this.around.scrollTop + this.around.clientHeight) this.around.scrollTop = bottom - this.around.clientHeight;
  }

  layOut(width, ratio, measure) {
    return layOut(this.data, width, ratio, measure);
  }

  paint(context) {
    paint(context, this.data, this.layout, this.theme, this.ratio);
  }

  mark(context) {
    mark(context, this.data, this.layout, this.theme, this.ratio, this.cell, this.chosen);
    const top = this.around.scrollTop * this.ratio;
    if (top > 0 && this.data.ground) hold(context, this.data, this.layout, this.theme, this.ratio, top);
  }

  under(event) {
    const spot = this.spot(event);
    return spot && (pick(this.layout, ...spot)?.index ?? null);
  }

  hover(index) {
    if (index === this.cell) return;
    this.cell = index;
    this.redraw();
  }

  tell() {
    if (this.cell !== null) this.say(sentence(this.data, this.cell));
    else if (this.host !== this.host.getRootNode().activeElement) this.say('');
  }

  dispose() {
    super.dispose();
    clearTimeout(this.settling);
    clearTimeout(this.telling);
  }
}

/** The header, with the numbers of `ground` and `arcs` as arrays or null. */
function decode(message) {
  const { header, body } = unpack(message);
  const count = header.tokens.length;
  const floats = (offset) => new Float32Array(body.buffer, body.byteOffset + offset, count);
  const { ground, arcs } = header;
  return {
    ...header,
    ground: ground ? { ...ground, values: floats(ground.values), colours: body.subarray(ground.colours, ground.colours + 768) } : null,
    arcs: arcs === undefined ? null : floats(arcs),
  };
}

/** What a word says. Positions count from 1. */
export const sentence = ({ tokens, says }, index) => says?.[index] ?? `'${tokens[index].replaceAll('\n', '↵')}' at ${index + 1}`;
