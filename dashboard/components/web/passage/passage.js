// A text, word by word, on one canvas, and a second one above it for the chosen word and what follows the pointer.

import { ARROWS } from '../../attention-lab.shared/canvas/canvases.js';
import { Chooser, SETTLE } from '../../attention-lab.shared/canvas/chooser.js';
import { mounting } from '../../attention-lab.shared/kit/mount.js';
import { unpack } from '../../attention-lab.shared/kit/payload.js';
import { beside, boxOf, layOut, pick } from '../../attention-lab.shared/passage/layout.js';
import { hold, mark, paint } from '../../attention-lab.shared/passage/paint.js';

export default mounting('passage', (root) => new Passage(root));

class Passage extends Chooser {
  constructor(root) {
    super(root, { layOut, paint, mark }, '.passage', '.scroller');
    this.around.addEventListener('scroll', () => this.redraw());
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
    this.offer(() => import('../../attention-lab.shared/passage/takeaway.js'));
  }

  said() {
    return this.data.chosen;
  }

  click(index) {
    if (index !== null && index >= this.data.first) this.choose(index);
  }

  press(key) {
    const { first, tokens } = this.data;
    if (!tokens.length) return false;
    const from = this.chosen ?? first;
    const [down, across] = ARROWS[key] ?? [];
    let to;
    if (across) to = from + across;
    else if (down) to = beside(this.layout, from, down);
    else if (key === 'Home') to = first;
    else if (key === 'End') to = tokens.length - 1;
    else return false;
    to = Math.max(first, Math.min(tokens.length - 1, to));
    this.choose(to, SETTLE);
    this.reveal(to);
    this.say(sentence(this.data, to));
    return true;
  }

  /** Scroll as little as it takes to see a word. */
  reveal(index) {
    const box = this.layout && boxOf(this.layout, index);
    if (!box) return;
    const [top, bottom] = [(box.y - box.height) / this.ratio, (box.y + 1.5 * box.height) / this.ratio];
    if (top < this.around.scrollTop) this.around.scrollTop = top;
    else if (bottom > this.around.scrollTop + this.around.clientHeight) this.around.scrollTop = bottom - this.around.clientHeight;
  }

  mark(context) {
    super.mark(context);
    const top = this.around.scrollTop * this.ratio;
    if (top > 0 && this.data.ground) hold(context, this.data, this.layout, this.theme, this.ratio, top);
  }

  pick(x, y) {
    return pick(this.layout, x, y)?.index ?? null;
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
