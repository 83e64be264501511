// The cursor of a figure over positions: dragged, or moved by the keys ↑ and ↓. What is read at it follows here and in the
// other figures of its group; Python is told once it is let go. `layout.meta.cursor` says what follows (see cursor_meta in
// dashboard/figures/encodings.py): {group, axis, at, most, shape, marks?, curves?, words?}, positions counted from 1.

import { move, moved } from '../kit/link.js';
import { matrices } from './crosshair.js';
import { axisOf, isButton, span, valueAt } from './plotly_private.js';

const STILL = 4; // pixels that a click may move
const TRUST = 1500; // ms for which a position chosen here stands against an older one still coming from Python
const REST = 300; // ms after the last key until Python is told
const KEYS = { ArrowUp: -1, ArrowDown: 1 };

export class Cursor {
  /** `plot` hosts the figure: {stage, fire}. */
  constructor(plot) {
    this.plot = plot;
    this.at = null;
    this.movedAt = -Infinity;
    this.frame = 0;
    this.over = new AbortController();
    plot.stage.addEventListener('pointerdown', (event) => this.press(event), { signal: this.over.signal });
    this.silence = moved(this, (position, group) => group === this.sent.group && this.stand(position));
  }

  /** Another figure is drawn: `sent` is of its layout. */
  drawn(sent) {
    this.sent = sent;
    window.Plotly.Fx.unhover(this.plot.stage); // its label says what stood under the pointer before
    const older = sent.at !== this.at && performance.now() - this.movedAt < TRUST && this.at <= sent.most;
    if (older) return this.follow();
    this.at = sent.at;
    this.movedAt = -Infinity; // Python has it: what comes now is newer
  }

  /** The position under the pointer; null beside the axes, unless it may be the `nearest`. */
  under({ clientX, clientY }, nearest = false) {
    const { left, top } = this.plot.stage.getBoundingClientRect();
    const places = { x: clientX - left, y: clientY - top };
    const inside = (letter) => {
      const { start, length } = span(axisOf(this.plot.stage, `${letter}axis`));
      return places[letter] >= start && places[letter] <= start + length;
    };
    if (!nearest && !(inside('x') && inside('y'))) return null;
    const axis = axisOf(this.plot.stage, `${this.sent.axis}axis`);
    return this.clamp(Math.round(valueAt(axis, places[this.sent.axis] - span(axis).start)));
  }

  clamp = (position) => Math.max(1, Math.min(this.sent.most, position));

  /** A drag, where dragging does not zoom; else, and by touch, where it scrolls the page, a click. */
  press(down) {
    const position = down.button === 0 && !isButton(down.target) ? this.under(down) : null;
    if (position === null) return;
    const drags = this.plot.stage.layout.dragmode === false && down.pointerType !== 'touch';
    const over = new AbortController();
    const heard = { signal: over.signal, capture: true };
    if (drags) {
      this.go(position);
      window.addEventListener('pointermove', (event) => this.go(this.under(event, true)), heard);
    }
    window.addEventListener('pointercancel', () => over.abort(), heard);
    const up = (event) => {
      over.abort();
      const still = Math.hypot(event.clientX - down.clientX, event.clientY - down.clientY) <= STILL;
      if (!drags && still) this.go(position);
      if (drags || still) this.tell();
    };
    window.addEventListener('pointerup', up, heard);
  }

  /** Answer a key; whether it was one of ours. */
  key({ key, ctrlKey, metaKey, altKey }) {
    if (!(key in KEYS) || ctrlKey || metaKey || altKey) return false;
    this.go(this.clamp(this.at + KEYS[key]));
    clearTimeout(this.rest);
    this.rest = setTimeout(() => this.tell(), REST);
    return true;
  }

  tell() {
    if (this.at !== this.sent.at) this.plot.fire('click', { cursor: this.at });
  }

  /** Stand at a position, here and in the other figures of the group. */
  go(position) {
    if (position === this.at) return;
    this.stand(position);
    move(this.sent.group, position, this);
  }

  stand(position) {
    this.at = this.clamp(position);
    this.movedAt = performance.now();
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.follow();
    });
  }

  /** Draw what is read at the cursor, in one call of Plotly. */
  follow() {
    const { stage } = this.plot;
    const { axis, shape, most, marks, curves, words } = this.sent;
    if (!stage.layout?.shapes?.[shape]) return;
    const { at } = this;
    const half = axis === 'y' ? 0.5 : 0;
    const layout = { [`shapes[${shape}].${axis}0`]: at - half, [`shapes[${shape}].${axis}1`]: at + half };
    if (words) layout[`annotations[${words.annotation}].text`] = words.text.replace('{}', at);
    const traces = {};
    let numbers;
    if (marks) {
      traces['marker.size'] = [Array.from({ length: most }, (_, i) => (i + 1 === at ? marks.here : marks.elsewhere))];
    } else if (curves) {
      const row = matrices(stage)[0]?.z[at - 1];
      if (!row) return;
      numbers = curves.map(({ trace }) => trace);
      traces.y = curves.map(({ first, step }) => Array.from(row).filter((_, i) => i >= first && (i - first) % step === 0));
    }
    window.Plotly.update(stage, traces, layout, numbers).then(
      () => window.Plotly.Fx.unhover(stage), // it has brought the label back
      () => {}, // purged meanwhile
    );
  }

  dispose() {
    this.over.abort();
    this.silence();
    clearTimeout(this.rest);
    cancelAnimationFrame(this.frame);
  }
}
