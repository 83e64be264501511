// What the pictures on canvas share: one canvas for the data, one above it for what follows the pointer, one frame at a
// time, and a line below that says what the pointer is on.

import { onRatio } from '../kit/mount.js';
import { same } from '../kit/payload.js';
import { readTheme } from '../kit/theme.js';
import { menu } from '../takeaway/menu.js';

/** A picture fits into the width of `around` and adds `layOut(width, ratio, measure)`, `paint`, `mark` and `tell`. */
export class Canvases {
  constructor(root, host, around = host) {
    this.host = root.querySelector(host);
    this.around = root.querySelector(around);
    this.base = root.querySelector('.base');
    this.overlay = root.querySelector('.overlay');
    this.line = root.querySelector('.sentence');
    this.cell = null; // under the pointer: {row, column} and what else the picture wants to know
    this.frame = this.frames = this.draws = 0;
    this.sizes = new ResizeObserver(() => this.around.clientWidth !== this.width && this.arrange());
    this.sizes.observe(this.around);
    this.still = onRatio(() => this.arrange());
  }

  /** Take a message from Python and the theme it comes to; false when both are known. */
  news(message, fire) {
    this.fire = fire;
    const theme = readTheme(this.host);
    if (same(message, this.message)) {
      if (theme.key === this.theme.key) return false;
      fire('theme', theme.text); // Python chose the colours for the other theme, and learns of a change in reruns only
    }
    this.message = message.slice();
    this.theme = theme;
    return true;
  }

  /** Offer it to be saved (see takeaway/menu.js): `load` fetches the program for that, `state` is what it needs. */
  offer(load, state, makers = () => null) {
    const drawn = (how) => load().then((files) => files[how](files.picture(this.data, this.theme, state()), this.theme));
    this.saving ??= menu(this.line.parentElement, {
      name: this.data.key,
      alt: () => this.data.alt,
      makers,
      note: async () => (await load()).note(this.data),
      svg: () => drawn('svg'),
      png: () => drawn('png'),
      body: () => drawn('body'),
      series: async () => (await load()).series(this.data, state()),
    });
  }

  /** Lay out and paint everything: after new data, a new size, or a new pixel ratio. */
  arrange() {
    const width = (this.width = this.around.clientWidth);
    if (!this.data || width === 0) return; // in a closed tab: the next size calls again
    const ratio = (this.ratio = window.devicePixelRatio || 1);
    const context = this.base.getContext('2d');
    const measure = (text, size) => {
      context.font = `${size}px ${this.theme.font}`;
      return context.measureText(text).width;
    };
    this.layout = this.layOut(width, ratio, measure);
    for (const canvas of [this.base, this.overlay]) {
      if (canvas.width !== this.layout.width) canvas.width = this.layout.width;
      if (canvas.height !== this.layout.height) canvas.height = this.layout.height;
      canvas.style.width = `${this.layout.width / ratio}px`;
      canvas.style.height = `${this.layout.height / ratio}px`;
    }
    this.paint(context);
    this.refresh();
    this.host.dataset.draws = ++this.draws;
  }

  /** Draw what follows the pointer, once a frame. */
  redraw() {
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.frames++;
      this.refresh();
    });
  }

  refresh() {
    if (!this.layout) return;
    this.mark(this.overlay.getContext('2d'));
    this.tell();
  }

  /** Where a pointer is, in pixels of the canvas; null before there is a picture. */
  spot(event) {
    const { left, top } = this.host.getBoundingClientRect();
    return this.layout ? [(event.clientX - left) * this.ratio, (event.clientY - top) * this.ratio] : null;
  }

  say(words) {
    if (this.line.textContent !== words) this.line.textContent = words;
  }

  dispose() {
    this.sizes.disconnect();
    this.still();
    cancelAnimationFrame(this.frame);
  }
}
