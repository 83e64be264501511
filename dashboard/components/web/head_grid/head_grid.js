// All heads on one canvas, and a second one above it for what follows the pointer.

import { ARROWS } from '../../attention-lab.shared/canvas/canvases.js';
import { Chooser, SETTLE } from '../../attention-lab.shared/canvas/chooser.js';
import { announce, chosen, hand, heed, light, listen, lit, screen } from '../../attention-lab.shared/kit/link.js';
import { mounting } from '../../attention-lab.shared/kit/mount.js';
import { isConnected } from '../../attention-lab.shared/kit/streamlit_private.js';
import { cellAt, decode, endsAs, neighbour, placeOf, sentence } from '../../attention-lab.shared/matrix/data.js';
import { layOut, pick } from '../../attention-lab.shared/matrix/layout.js';
import { mark, outline, paint } from '../../attention-lab.shared/matrix/paint.js';

const SMALL = 60; // pixels of a thumbnail below which the grid is a picture on a card: it says nothing below itself

export default mounting('head_grid', (root) => new Grid(root));

class Grid extends Chooser {
  constructor(root) {
    super(root, { layOut, paint, mark }, '.grid', '.scroller', 'focus');
    this.chosen = 0;
    this.silence = listen(this, (cell, group) => group === this.data?.link && this.follow(cell));
    this.ignore = heed(this, (_, group) => group === this.data?.link && this.data.focus === null && this.settle());
    this.leave = screen(this, (film) => this.replay(film));
    this.lit = null; // the name of a head that is pointed at elsewhere
    this.dim = lit(this, (name) => this.shine(name));
    this.host.__grid = this; // for tests: panels, boxes, ratio, frames
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
    this.replayed = null;
    this.host.setAttribute('aria-label', this.data.alt);
    this.host.dataset.panels = this.panels.length;
    this.around.classList.toggle('small', this.data.size < SMALL);
    if (this.chosen >= this.panels.length) this.chosenAt = -Infinity; // that choice was of another model
    this.settle();
    this.arrange();
    this.offer(() => import('../../attention-lab.shared/head_grid/takeaway.js'));
  }

  said() {
    const named = this.data.focus ?? chosen(this.data.link) ?? 0;
    return named < this.panels.length ? named : 0; // the choice may be of another model
  }

  show(chosen) {
    super.show(chosen);
    this.host.dataset.focus = chosen;
  }

  choose(chosen, delay) {
    super.choose(chosen, delay);
    if (this.data.link && isConnected()) hand(this.data.link, this.data, chosen, this);
  }

  click(place) {
    if (place) this.choose(place.panel);
  }

  press(key) {
    if (key === 'Enter' || key === ' ') this.choose(this.chosen);
    else if (key in ARROWS) {
      const [down, across] = ARROWS[key];
      const next = neighbour(this.panels, this.panels[this.chosen], across, down);
      if (next.index !== this.chosen) this.choose(next.index, SETTLE);
    } else return false;
    return true;
  }

  pick(x, y) {
    return pick(this.panels, this.layout, x, y);
  }

  hover(place) {
    const panel = place && this.panels[place.panel];
    const on = place && place.row !== null;
    if (panel?.name !== this.pointed?.name) light(panel?.name ?? null, this);
    this.pointed = panel ?? null;
    this.host.style.cursor = panel ? 'pointer' : '';
    const cell = on ? cellAt(panel, place.row, place.column) : null;
    const moved = cell?.row !== this.cell?.row || cell?.column !== this.cell?.column || cell?.rows !== this.cell?.rows;
    this.cell = cell;
    this.redraw();
    if (moved && this.data.link) announce(this.data.link, cell, this);
  }

  /** Outline the head of this name, which is pointed at elsewhere; null is none. */
  shine(name) {
    if (name === this.lit) return;
    this.lit = name;
    this.redraw();
  }

  mark(context) {
    super.mark(context);
    const panel = this.lit === null ? undefined : this.panels.find(({ name }) => name === this.lit);
    if (panel) outline(context, this.boxes[panel.index], this.theme, this.ratio);
  }

  /** A moment of a replay in place of the patterns it ends with; with null these again. Returns whether it shows any. */
  replay(film) {
    if (!this.data || this.data.byRow || !(film || this.replayed)) return false;
    if (film?.panels !== this.replayed?.panels) {
      for (const { panel, own } of this.replayed?.pairs ?? []) panel.values = own;
      const pair = (panel) => ({ panel, own: panel.values, now: film.panels.find((head) => endsAs(head, panel)) });
      this.replayed = film && { panels: film.panels, pairs: this.panels.map(pair).filter(({ now }) => now) };
    }
    for (const { panel, now } of this.replayed?.pairs ?? []) panel.values = now.values;
    if (this.layout) this.paint(this.base.getContext('2d'));
    return Boolean(this.replayed?.pairs.length);
  }

  /** Another component of this link has its pointer on `cell`. */
  follow(cell) {
    this.cell = cell;
    this.pointed = cell ? this.panels[this.chosen] : null;
    this.redraw();
  }

  /** Say what the crosshair is on; without one, to whoever uses the keys, which head is chosen. */
  tell() {
    const { cell, pointed } = this;
    const panel = pointed ? this.panels[pointed.index] : this.host.matches(':focus-visible') && this.panels[this.chosen];
    if (!panel) this.say('');
    else if (!cell) this.say(panel.group ? `Head ${panel.name}, ${panel.group}` : `Head ${panel.name}`);
    else {
      const place = placeOf(panel, cell);
      this.say(place ? sentence(panel, place.row, place.column) : '');
    }
  }

  dispose() {
    super.dispose();
    this.silence();
    this.ignore();
    this.leave();
    this.dim();
  }
}
