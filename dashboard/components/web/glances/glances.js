// What every head looked at in a text: the text in small, once for each, on one canvas; a click chooses a head.

import { Canvases } from '../../attention-lab.shared/canvas/canvases.js';
import { layOut, mark, paint, pick, rowOf } from '../../attention-lab.shared/glances/paint.js';
import { mounting } from '../../attention-lab.shared/kit/mount.js';
import { unpack } from '../../attention-lab.shared/kit/payload.js';
import { number } from '../../attention-lab.shared/passage/paint.js';

const ARROWS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
const SETTLE = 120; // ms between the last arrow key and the message to Python
const TRUST = 1500; // ms for which a choice made here stands against an older one still coming from Python

export default mounting((root) => new Glances(root));

class Glances extends Canvases {
  constructor(root) {
    super(root, '.glances');
    this.chosen = null;
    this.chosenAt = -Infinity;
    this.host.addEventListener('pointermove', (event) => this.hover(this.under(event)));
    this.host.addEventListener('pointerleave', () => this.hover(null));
    this.host.addEventListener('click', (event) => this.choose(this.under(event)?.panel, 0));
    this.host.addEventListener('keydown', (event) => this.key(event));
    this.host.__glances = this; // for tests: data, layout, chosen, cell
  }

  update(message, fire) {
    if (!this.news(message, fire)) return this.settle();
    const { header, body } = unpack(this.message);
    const count = header.heads.length * header.tokens.length;
    const weights = new Float32Array(body.buffer, body.byteOffset + header.weights, count);
    this.data = { ...header, weights, colours: body.subarray(header.colours, header.colours + 768) };
    this.host.setAttribute('aria-label', this.data.alt);
    this.cell = null;
    this.settle();
    this.arrange();
    this.host.dataset.heads = header.heads.length;
    this.offer(() => import('../../attention-lab.shared/glances/takeaway.js'), () => this.chosen);
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

  choose(head, delay) {
    if (head === undefined) return;
    this.chosenAt = performance.now();
    this.show(head);
    clearTimeout(this.telling);
    this.telling = setTimeout(() => this.fire('choose', head), delay);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || !this.data) return;
    const arrow = ARROWS[event.key];
    if (!arrow) return;
    const { heads } = this.data;
    const [layer, head] = this.chosen === null ? [-1, -1] : heads[this.chosen];
    const to = this.chosen === null ? 0 : heads.findIndex(([l, h]) => l === layer + arrow[0] && h === head + arrow[1]);
    if (to >= 0) {
      this.choose(to, SETTLE);
      this.say(this.sentence(to, null));
    }
    event.preventDefault();
    event.stopPropagation();
  }

  layOut(width, ratio, measure) {
    return layOut(this.data, width, ratio, measure);
  }

  paint(context) {
    paint(context, this.data, this.layout, this.theme, this.ratio);
  }

  mark(context) {
    mark(context, this.data, this.layout, this.theme, this.ratio, this.cell, this.chosen);
  }

  under(event) {
    const spot = this.spot(event);
    return spot && pick(this.layout, ...spot, this.ratio);
  }

  hover(place) {
    if (place?.panel === this.cell?.panel && place?.index === this.cell?.index) return;
    this.cell = place;
    this.redraw();
  }

  tell() {
    if (this.cell) this.say(this.sentence(this.cell.panel, this.cell.index));
    else if (this.host !== this.host.getRootNode().activeElement) this.say('');
  }

  /** How much a head looked at a word, or at which it looked most. Positions count from 1. */
  sentence(head, index) {
    const { heads, tokens, query } = this.data;
    const { row, most } = rowOf(this.data, head);
    const name = `Head ${heads[head].join('.')}`;
    const token = (at) => `'${tokens[at].replaceAll('\n', '↵')}' at ${at + 1}`;
    if (index === null) return `${name} looked most at ${token(row.indexOf(most))}: ${number(most, 2)}`;
    if (Number.isNaN(row[index])) return `${token(index)} could not be seen from ${token(query)}`;
    return `${name}, query ${token(query)}, reads ${token(index)}: ${number(row[index], 2)}`;
  }

  dispose() {
    super.dispose();
    clearTimeout(this.settling);
    clearTimeout(this.telling);
  }
}
