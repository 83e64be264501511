// What the pictures on canvas share: one canvas for the data, one above it for what follows the pointer, one frame at a
// time, and a line below that says what the pointer is on.

import { onRatio } from '../kit/mount.js';
import { same } from '../kit/payload.js';
import { measuring, resize } from '../kit/sizes.js';
import { readTheme } from '../kit/theme.js';
import { menu } from '../takeaway/menu.js';

export const ARROWS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }; // [down, across]

/**
 * A picture of `data` within the element `host`, as wide as `around`. `drawing` is what it is drawn with, on the page and
 * in files:
 *
 *   layOut(data, width, ratio, measure)                      where everything stands; {width, height} in device pixels …
 *   paint(context, data, layout, theme, ratio)               all that only new data change
 *   mark(context, data, layout, theme, ratio, cell, chosen)  what follows the pointer, and what is chosen
 *
 * A component adds `pick(x, y)`, what is at a point in device pixels, and `tell()`, which says what the pointer is on.
 */
export class Canvases {
  constructor(root, drawing, host, around = host) {
    this.drawing = drawing;
    this.host = root.querySelector(host);
    this.around = root.querySelector(around);
    this.base = root.querySelector('.base');
    this.overlay = root.querySelector('.overlay');
    this.line = root.querySelector('.sentence');
    this.cell = null; // under the pointer, as the picture knows it
    this.chosen = null;
    this.frame = this.frames = this.draws = 0;
    this.sizes = new ResizeObserver(() => this.around.clientWidth !== this.width && this.arrange());
    this.sizes.observe(this.around);
    this.still = onRatio(() => this.arrange());
  }

  /** Take a message from Python and the theme it comes to; false when both are known. */
  news(message, fire) {
    this.fire = fire;
    const theme = readTheme(this.host);
    if (same(message, this.message) && theme.key === this.theme.key) return false;
    this.message = message.slice();
    this.theme = theme;
    return true;
  }

  /**
   * Offer it to be saved (see takeaway/menu.js). `load` fetches what knows its files: `picture`, `series` and, where its
   * numbers need one, `note`; `state` is what they ask for beside the data.
   */
  offer(load, state = () => this.chosen) {
    const drawn = async (how) => {
      const [own, files] = await Promise.all([load(), import('../takeaway/canvas.js')]);
      return files[how](own.picture(this.data, this.theme, state()), this.theme);
    };
    this.saving ??= menu(this.line.parentElement, {
      name: this.data.key,
      alt: () => this.data.alt,
      makers: () => this.data.makers ?? null,
      note: async () => (await load()).note?.(this.data) ?? '',
      svg: () => drawn('svg'),
      png: () => drawn('png'),
      body: () => drawn('body'),
      series: async () => (await load()).series(this.data, state()),
    });
  }

  /** Lay out and paint everything: after new data, a new size, or a new pixel ratio. */
  arrange() {
    const width = (this.width = this.around.clientWidth);
    this.layout = null;
    if (!this.data || width === 0) return; // in a closed tab: the next size calls again
    this.ratio = window.devicePixelRatio || 1;
    this.layout = this.drawing.layOut(this.data, width, this.ratio, measuring(this.theme.font));
    resize([this.base, this.overlay], this.layout.width, this.layout.height, this.ratio);
    this.paint(this.base.getContext('2d'));
    this.refresh();
    this.host.dataset.draws = ++this.draws;
  }

  paint(context) {
    this.drawing.paint(context, this.data, this.layout, this.theme, this.ratio);
  }

  mark(context) {
    this.drawing.mark(context, this.data, this.layout, this.theme, this.ratio, this.cell, this.chosen);
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

  /** What is under a pointer; null before there is a picture. */
  under(event, ...how) {
    if (!this.layout) return null;
    const { left, top } = this.host.getBoundingClientRect();
    return this.pick((event.clientX - left) * this.ratio, (event.clientY - top) * this.ratio, ...how);
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
