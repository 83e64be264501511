// All heads on one canvas, and a second one above it for what follows the pointer.

import { Canvases } from '../../attention-lab.shared/canvas/canvases.js';
import { announce, chosen, heed, listen } from '../../attention-lab.shared/kit/link.js';
import { mounting } from '../../attention-lab.shared/kit/mount.js';
import { cellAt, decode, neighbour, placeOf, sentence } from '../../attention-lab.shared/matrix/data.js';
import { layOut, pick } from '../../attention-lab.shared/matrix/layout.js';
import { mark, paint } from '../../attention-lab.shared/matrix/paint.js';

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const SETTLE = 120; // ms between the last arrow key and the message to Python
const TRUST = 1500; // ms for which a choice made here stands against an older one still coming from Python

export default mounting((root) => new Grid(root));

class Grid extends Canvases {
  constructor(root) {
    super(root, '.grid', '.scroller');
    this.focus = 0;
    this.chosenAt = -Infinity;
    this.silence = listen(this, (cell, group) => group === this.data?.link && this.follow(cell));
    this.ignore = heed(this, (_, group) => group === this.data?.link && this.data.focus === null && this.settle());
    this.host.addEventListener('pointermove', (event) => this.hover(this.under(event)));
    this.host.addEventListener('pointerleave', () => this.hover(null));
    this.host.addEventListener('click', (event) => {
      const place = this.under(event);
      if (place) this.choose(place.panel, 0);
    });
    this.host.addEventListener('keydown', (event) => this.key(event));
    this.host.__grid = this; // for tests: pick(x, y), panels, boxes, focus, frames
  }

  get panels() {
    return this.data.panels;
  }

  get boxes() {
    return this.layout.boxes;
  }

  update(message, fire) {
    if (!this.news(message, fire)) return this.settle();
    this.data = decode(this.message);
    this.host.setAttribute('aria-label', this.data.alt);
    this.host.dataset.panels = this.panels.length;
    this.settle();
    this.arrange();
    this.offer(() => import('../../attention-lab.shared/head_grid/takeaway.js'), () => this.focus);
  }

  /** Take the focus Python asks for, unless a choice made here may still be on its way to it. */
  settle() {
    clearTimeout(this.settling);
    const wait = this.chosenAt + TRUST - performance.now();
    const named = this.data.focus ?? chosen(this.data.link) ?? 0;
    const asked = named < this.panels.length ? named : 0; // the choice may be of another model
    if (asked !== this.focus && this.focus < this.panels.length && wait > 0) {
      this.settling = setTimeout(() => this.settle(), wait);
    } else {
      this.show(asked);
    }
  }

  show(focus) {
    this.focus = focus;
    this.host.dataset.focus = focus;
    this.redraw();
  }

  choose(panel, delay) {
    this.chosenAt = performance.now();
    this.show(panel);
    clearTimeout(this.telling);
    this.telling = setTimeout(() => this.fire('focus', panel), delay);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const arrow = ARROWS[event.key];
    if (arrow) {
      const next = neighbour(this.panels, this.panels[this.focus], ...arrow);
      if (next.index !== this.focus) this.choose(next.index, SETTLE);
      this.say(`Head ${next.name}, ${next.group}`);
    } else if (event.key === 'Enter' || event.key === ' ') {
      this.choose(this.focus, 0);
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  layOut(width, ratio, measure) {
    return layOut(this.panels, width, this.data.size, ratio, measure);
  }

  paint(context) {
    this.host.style.width = this.base.style.width;
    this.host.style.height = this.base.style.height;
    this.host.dataset.labelled = this.layout.labelled;
    paint(context, this.data, this.layout, this.theme, this.ratio);
  }

  mark(context) {
    if (this.layout.boxes.length !== this.panels.length) return; // not laid out yet for a model that has just come
    mark(context, this.data, this.layout, this.theme, this.ratio, this.focus, this.cell);
  }

  /** What is at (x, y), in CSS pixels from the grid's corner. */
  pick(x, y) {
    return this.layout ? pick(this.panels, this.layout, x * this.ratio, y * this.ratio) : null;
  }

  under(event) {
    const spot = this.spot(event);
    return spot && pick(this.panels, this.layout, ...spot);
  }

  hover(place) {
    const panel = place && this.panels[place.panel];
    const on = place && place.row !== null;
    this.pointed = panel ?? null;
    this.host.style.cursor = panel ? 'pointer' : '';
    const cell = on ? cellAt(panel, place.row, place.column) : null;
    const moved = cell?.row !== this.cell?.row || cell?.column !== this.cell?.column || cell?.rows !== this.cell?.rows;
    this.cell = cell;
    this.redraw();
    if (moved && this.data.link) announce(this.data.link, cell, this);
  }

  /** Another component of this link has its pointer on `cell`. */
  follow(cell) {
    this.cell = cell;
    this.pointed = cell ? this.panels[this.focus] : null;
    this.redraw();
  }

  /** Say what the crosshair is on. */
  tell() {
    const { cell, pointed } = this;
    const panel = pointed && this.panels[pointed.index];
    if (!panel) this.say('');
    else if (!cell) this.say(`Head ${panel.name}, ${panel.group}`);
    else {
      const place = placeOf(panel, cell);
      this.say(place ? sentence(panel, place.row, place.column) : '');
    }
  }

  dispose() {
    super.dispose();
    this.silence();
    this.ignore();
    clearTimeout(this.settling);
    clearTimeout(this.telling);
  }
}
