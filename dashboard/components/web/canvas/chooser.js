// A picture in which one thing is chosen, by a click or by keys. It is shown at once; Python learns of it.

import { Canvases } from './canvases.js';

export const SETTLE = 120; // ms between the last arrow key and the message to Python
const TRUST = 1500; // ms for which a choice made here stands against an older one still coming from Python

/**
 * What is chosen has a number. A component adds `said()`, the one that Python says, and `press(key)`: what a key does, and
 * whether it does anything. `event` is what Python calls a choice.
 */
export class Chooser extends Canvases {
  constructor(root, drawing, host, around, event = 'choose') {
    super(root, drawing, host, around);
    this.event = event;
    this.chosenAt = -Infinity;
    this.host.addEventListener('pointermove', (event) => this.hover(this.under(event)));
    this.host.addEventListener('pointerleave', () => this.hover(null));
    this.host.addEventListener('click', (event) => this.click(this.under(event)));
    this.host.addEventListener('keydown', (event) => this.key(event));
  }

  /** Take the choice that Python says, unless one made here may still be on its way to it. */
  settle() {
    clearTimeout(this.settling);
    const wait = this.chosenAt + TRUST - performance.now();
    const said = this.said();
    if (said !== this.chosen && wait > 0) this.settling = setTimeout(() => this.settle(), wait);
    else this.show(said);
  }

  show(chosen) {
    this.chosen = chosen;
    this.host.dataset.chosen = chosen ?? '';
    this.redraw();
  }

  choose(chosen, delay = 0) {
    this.chosenAt = performance.now();
    this.show(chosen);
    clearTimeout(this.telling);
    this.telling = setTimeout(() => this.fire(this.event, chosen), delay);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || !this.layout || !this.press(event.key)) return;
    event.preventDefault();
    event.stopPropagation();
  }

  dispose() {
    super.dispose();
    clearTimeout(this.settling);
    clearTimeout(this.telling);
  }
}
