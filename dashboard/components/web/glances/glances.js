// What every head looked at in a text: the text in small, once for each, on one canvas; a click chooses a head.

import { ARROWS } from '../../attention-lab.shared/canvas/canvases.js';
import { Chooser, SETTLE } from '../../attention-lab.shared/canvas/chooser.js';
import { layOut, mark, paint, pick, rowOf } from '../../attention-lab.shared/glances/paint.js';
import { mounting } from '../../attention-lab.shared/kit/mount.js';
import { unpack } from '../../attention-lab.shared/kit/payload.js';
import { number } from '../../attention-lab.shared/passage/paint.js';

export default mounting('glances', (root) => new Glances(root));

class Glances extends Chooser {
  constructor(root) {
    super(root, { layOut, paint, mark }, '.glances');
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
    this.offer(() => import('../../attention-lab.shared/glances/takeaway.js'));
  }

  said() {
    return this.data.chosen;
  }

  click(place) {
    if (place) this.choose(place.panel);
  }

  press(key) {
    if (!(key in ARROWS)) return false;
    const [down, across] = ARROWS[key];
    const { heads } = this.data;
    const [layer, head] = this.chosen === null ? [-1, -1] : heads[this.chosen];
    const to = this.chosen === null ? 0 : heads.findIndex(([l, h]) => l === layer + down && h === head + across);
    if (to >= 0) {
      this.choose(to, SETTLE);
      this.say(this.sentence(to, null));
    }
    return true;
  }

  pick(x, y) {
    return pick(this.layout, x, y, this.ratio);
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
}
