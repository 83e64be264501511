// The film: a playhead over the steps of a training, a stage that shows what was at it, and the controls under both.

import { project } from '../kit/link.js';
import { same } from '../kit/payload.js';
import { measuring, resize } from '../kit/sizes.js';
import { isConnected } from '../kit/streamlit_private.js';
import { readTheme } from '../kit/theme.js';
import { decode, place, stepAt, upTo } from './reel.js';
import { arrange, arrangeCharts, describe, draw, drawOver, exposeAll, under, view } from './stage.js';
import { Transport } from './transport.js';

const REST = 1200; // ms at its end before it begins again, or a replay goes
const AGAIN = 3000; // ms after which the end of a replay is told once more: a request in that moment may have lost it
const FADE = 140; // ms in which a picture comes out of the one before

export class Player {
  /**
   * `fire(name, value)` tells whoever mounted it: 'step' to use everywhere, 'focus' for the head that was clicked, 'end'
   * of a replay.
   */
  constructor(root, fire = () => {}) {
    this.host = root.querySelector('.film');
    this.stage = root.querySelector('.stage');
    this.base = root.querySelector('.base');
    this.overlay = root.querySelector('.overlay');
    this.line = root.querySelector('.sentence');
    this.note = root.querySelector('.note');
    this.mark = root.querySelector('.replay');
    // The style sheet may come later than the first picture: what it would move is put into place here.
    this.stage.style.position = 'relative';
    this.base.style.display = 'block';
    Object.assign(this.overlay.style, { position: 'absolute', inset: 0 });
    this.mark.style.margin = this.note.style.margin = 0;
    this.fire = fire;
    this.place = 0; // among the stops; a fraction is on the way to the next
    this.playing = false;
    this.looping = false;
    this.speed = 1;
    this.frames = 0;
    this.listening = false; // for what ends a replay
    this.elsewhere = false; // do pictures of the page show its heads?
    this.shownAt = -Infinity;
    this.calm = window.matchMedia('(prefers-reduced-motion: reduce)');
    this.transport = new Transport(root, {
      toggle: () => this.toggle(),
      go: (stop) => this.go(stop),
      step: (by) => this.go(Math.floor(this.place + 1e-9) + by),
      speed: (factor) => this.set({ speed: factor }),
      loop: () => this.set({ looping: !this.looping }),
      use: (step) => this.fire('step', step),
    });
    this.sizes = new ResizeObserver(() => this.arrange());
    this.sizes.observe(this.host);
    this.schemes = window.matchMedia('(prefers-color-scheme: dark)');
    this.schemeChanged = () => this.retheme();
    this.schemes.addEventListener('change', this.schemeChanged);
    this.stage.addEventListener('pointermove', (event) => this.point(this.under(event)));
    this.stage.addEventListener('pointerleave', () => this.point(null));
    this.stage.addEventListener('click', (event) => this.click(this.under(event)));
    this.host.addEventListener('keydown', (event) => this.key(event));
    this.ending = (event) => event.repeat || this.end(); // whatever else the key or click does
    this.host.__film = this; // for tests: reel, layout, seen, frames
  }

  get last() {
    return this.reel.stops.length - 1;
  }

  update(message) {
    const theme = readTheme(this.host);
    if (same(message, this.message)) {
      if (theme.key !== this.theme.key) this.retheme();
      return;
    }
    const first = !this.reel;
    const stood = first ? null : stepAt(this.reel.stops, this.place);
    const atEnd = !first && this.place >= this.last;
    const replayed = !first && this.reel.replay;
    this.message = message.slice();
    this.reel = decode(this.message);
    this.theme = theme;
    this.focus = this.reel.focus;
    this.stage.setAttribute('aria-label', this.reel.alt);
    this.note.textContent = this.reel.note;
    if (this.reel.live || first || atEnd) this.place = Math.max(0, this.last);
    else this.place = this.playing ? place(this.reel.stops, stood) : Math.max(0, upTo(this.reel.stops, stood) - 1);
    this.mark.hidden = !this.reel.replay;
    this.line.hidden = this.reel.replay;
    this.arrange();
    if (this.reel.replay) return replayed || this.replay();
    this.listen(false);
    if (first && !this.reel.live && this.last > 0 && !this.calm.matches) this.toggle();
    else if (this.reel.live) this.set({ playing: false });
  }

  retheme() {
    this.theme = readTheme(this.host);
    this.paint();
  }

  // --- time

  /** Play once, from the beginning. */
  replay() {
    if (this.calm.matches || this.last < 1) return setTimeout(() => this.tellEnd()); // Streamlit hears of nothing while it mounts
    this.place = 0;
    this.listen(true);
    this.set({ playing: true });
    this.arrange(); // by now it is known who shows the heads
  }

  /** End a replay, at its last step. */
  end() {
    this.listen(false);
    this.place = Math.max(0, this.last);
    this.set({ playing: false });
    this.tellEnd();
  }

  /** Say that the replay is over, until it is taken away. */
  tellEnd() {
    if (!this.host.isConnected || !this.reel.replay || this.listening) return;
    this.fire('end', true);
    if (isConnected()) this.telling = setTimeout(() => this.tellEnd(), AGAIN);
  }

  /** Let any key and any click end the replay that begins; or, where it is over, none, and the page show its own pictures. */
  listen(on) {
    if (on === this.listening) return;
    this.listening = on;
    for (const type of ['keydown', 'pointerdown'])
      if (on) window.addEventListener(type, this.ending, true);
      else window.removeEventListener(type, this.ending, true);
    this.told = '';
    if (!on) project(null, this);
  }

  /** Let the page's pictures of these heads show a moment of the replay, where it is another one. */
  project(look, fade) {
    const moment = `${this.seen.picture} ${fade}`;
    if (moment !== this.told) this.elsewhere = project({ panels: this.reel.panels, look }, this);
    this.told = moment;
  }

  toggle() {
    if (!this.playing && this.place >= this.last) this.place = 0;
    this.set({ playing: !this.playing });
  }

  /** Stand still at a stop. */
  go(stop) {
    this.place = Math.max(0, Math.min(this.last, stop));
    this.shownAt = -Infinity; // no fade: this is a place somebody asked for
    this.set({ playing: false });
    this.read();
  }

  set(changes) {
    Object.assign(this, changes);
    this.before = null;
    this.shown = this.seen?.picture;
    this.line.setAttribute('aria-live', this.playing ? 'off' : 'polite'); // nobody wants every frame read out
    this.paint();
    if (this.playing) this.tick();
  }

  tick() {
    this.next ||= requestAnimationFrame((now) => {
      this.next = 0;
      if (!this.playing || !this.host.isConnected) return;
      const passed = this.before === null ? 0 : Math.min(100, now - this.before); // a hidden tab skips nothing
      this.before = now;
      this.move(passed * this.speed, now);
      this.paint(now);
      if (this.playing) this.tick();
    });
  }

  move(passed, now) {
    if (this.place < this.last) {
      this.place = Math.min(this.last, this.place + (passed * this.last) / this.reel.length);
      this.ended = now;
    } else if (this.reel.replay) {
      if (now - this.ended > REST) this.end();
    } else if (!this.looping) {
      this.set({ playing: false });
    } else if (now - this.ended > REST) {
      this.place = 0;
    }
  }

  // --- pictures

  /** Lay out and paint everything: after new data or a new size. */
  arrange() {
    const width = this.host.clientWidth;
    if (!this.reel || !width) return; // in a closed tab: the next size calls again
    this.ratio = window.devicePixelRatio || 1;
    const alone = this.reel.replay && this.elsewhere;
    this.layout = alone ? arrangeCharts(width) : arrange(this.reel, width, this.ratio, measuring(this.theme.font));
    const [wide, high] = [width, this.layout.height].map((length) => Math.round(length * this.ratio));
    resize([this.base, this.overlay], wide, high, this.ratio);
    this.stage.style.height = `${this.layout.height}px`;
    this.transport.lay(this.reel);
    this.paint();
  }

  paint(now = performance.now()) {
    if (!this.layout || !this.reel) return;
    const { reel } = this;
    // Live there may be losses and no stop yet: everything that is there is shown.
    const step = reel.live || this.last < 0 ? Infinity : stepAt(reel.stops, this.place);
    this.seen = view(reel, step + 1e-9);
    if (this.playing && this.seen.picture !== this.shown) this.shownAt = now;
    this.shown = this.seen.picture;
    const fade = this.calm.matches ? 1 : Math.min(1, (now - this.shownAt) / FADE);
    const look = reel.looks[this.theme.dark ? 'dark' : 'light'];
    exposeAll(reel, this.seen, this.playing ? fade : 1);
    if (this.listening) this.project(look, fade);
    draw(this.base.getContext('2d'), reel, this.layout, this.theme, look, this.ratio, this.seen, this.playing ? fade : 1);
    this.paintOver();
    if (this.pointed) this.read();
    if (!this.transport.host.hidden) {
      const stop = Math.min(this.last, Math.floor(this.place + 1e-9));
      const state = { stop, step: Math.floor(step + 1e-9), playing: this.playing, speed: this.speed, loop: this.looping };
      this.transport.show(state);
    }
    if (reel.replay) this.mark.textContent = `Replay, step ${Math.floor(step + 1e-9)} of ${reel.stops.at(-1)}. Any key or click ends it.`;
    this.tell(step);
  }

  paintOver() {
    const cell = this.pointed?.row != null && this.reel.panels[this.pointed.head];
    const crosshair = cell ? { row: this.pointed.row, column: this.pointed.column, rows: cell.rows, columns: cell.columns } : null;
    drawOver(this.overlay.getContext('2d'), this.reel, this.layout, this.theme, this.ratio, this.focus, crosshair);
  }

  /** Where the film stands, for whoever looks at the page from outside. */
  tell(step) {
    this.frames++;
    const { reel, seen } = this;
    Object.assign(this.host.dataset, {
      state: 'ready',
      step: Number.isFinite(step) ? Math.floor(step + 1e-9) : (reel.loss.steps.at(-1) ?? 0),
      losses: seen.losses,
      patterns: seen.picture < 0 ? '' : reel.patternSteps[seen.picture],
      accuracy: seen.measured < 0 ? '' : reel.accuracySteps[seen.measured],
      playing: this.playing,
    });
  }

  // --- hands

  under(event) {
    if (!this.layout) return null;
    const { left, top } = this.stage.getBoundingClientRect();
    return under(this.reel, this.layout, this.ratio, event.clientX - left, event.clientY - top);
  }

  point(found) {
    this.pointed = found;
    this.stage.style.cursor = found?.head !== undefined || (found?.step !== undefined && this.last > 0 && !this.reel.live) ? 'pointer' : '';
    if (this.layout) this.paintOver();
    this.read();
  }

  /** A click on a head chooses it; one on the loss goes to that step. */
  click(found) {
    this.stage.focus({ preventScroll: true });
    if (found?.head !== undefined) {
      this.focus = found.head;
      this.paintOver();
      this.fire('focus', found.head);
    } else if (found?.step !== undefined && this.last > 0 && !this.reel.live) {
      this.go(Math.round(place(this.reel.stops, found.step)));
    }
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || this.reel.live || this.reel.replay || this.last < 1) return;
    const on = event.composedPath()[0];
    if (event.key === ' ') {
      if (on.matches?.('button')) return; // the button's own key
      this.toggle();
    } else {
      if (on.matches?.('.scrubber')) return; // a range knows these keys itself
      const to = { ArrowLeft: this.place - 1, ArrowRight: this.place + 1, Home: 0, End: this.last }[event.key];
      if (to === undefined) return;
      this.go(event.key === 'ArrowLeft' ? Math.ceil(to - 1e-9) : Math.floor(to + 1e-9));
      if (!this.pointed) this.say(`Step ${this.reel.stops[this.place]}`);
    }
    event.preventDefault();
    event.stopPropagation();
  }

  /** Say what the pointer is on. */
  read() {
    if (this.seen) this.say(describe(this.reel, this.seen, this.pointed));
  }

  say(text) {
    if (this.line.textContent !== text) this.line.textContent = text;
  }

  dispose() {
    this.playing = false;
    this.listen(false);
    clearTimeout(this.telling);
    this.sizes.disconnect();
    this.schemes.removeEventListener('change', this.schemeChanged);
    cancelAnimationFrame(this.next);
  }
}
