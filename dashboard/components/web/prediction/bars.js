// Bars from 0 to 1 that are drawn by hand: a stroke over them sets each, and so do the arrow keys. The answer stands
// behind them afterwards, and over both what a room drew.

import { element } from './element.js';
import { written } from './fields.js';

const KEYS = { ArrowUp: 0.05, ArrowDown: -0.05, ArrowRight: 0.05, ArrowLeft: -0.05, PageUp: 0.2, PageDown: -0.2, Home: -1, End: 1 };
const clamp = (value) => Math.min(1, Math.max(0, value));

export class Bars {
  constructor({ labels, truth }, changed) {
    this.truth = truth;
    this.labels = labels;
    this.changed = changed;
    this.heights = labels.map(() => 0.5);
    this.value = null;
    this.over = false;
    this.bars = labels.map((label, place) => {
      const bar = element('div', { className: 'bar', role: 'slider', tabIndex: 0, 'aria-label': label });
      bar.setAttribute('aria-valuemin', '0');
      bar.setAttribute('aria-valuemax', '1');
      bar.append(element('div', { className: 'truth' }), element('div', { className: 'drawn' }));
      bar.addEventListener('keydown', (event) => this.key(event, place));
      return bar;
    });
    this.field = element('div', { className: 'bars' }, ...this.bars);
    this.field.addEventListener('pointerdown', (event) => {
      if (this.over) return;
      this.field.setPointerCapture(event.pointerId);
      this.stroke(event);
    });
    this.field.addEventListener('pointermove', (event) => event.buttons && this.stroke(event));
    const names = element('div', { className: 'names', 'aria-hidden': 'true' }, ...labels.map((label) => element('span', { textContent: label })));
    const scale = element('div', { className: 'scale', 'aria-hidden': 'true' }, ...['1', '0.5', '0'].map((at) => element('span', { textContent: at })));
    const hint = element('p', { className: 'hint', textContent: 'Drag over the bars, or use the arrow keys.' });
    this.host = element('div', { className: 'drawing' }, scale, this.field, names, hint);
    this.draw();
  }

  stroke(event) {
    if (this.over) return;
    const { left, top, width, height } = this.field.getBoundingClientRect();
    const place = Math.floor(((event.clientX - left) / width) * this.bars.length);
    if (place < 0 || place >= this.bars.length) return;
    this.set(place, Math.round(clamp(1 - (event.clientY - top) / height) * 100) / 100);
  }

  key(event, place) {
    if (!(event.key in KEYS) || this.over) return;
    event.preventDefault();
    event.stopPropagation();
    this.set(place, Math.round(clamp(this.heights[place] + KEYS[event.key]) * 100) / 100);
  }

  set(place, height) {
    this.heights[place] = height;
    this.value = { bars: [...this.heights] };
    this.draw();
    this.changed();
  }

  draw() {
    this.bars.forEach((bar, place) => {
      bar.setAttribute('aria-valuenow', this.heights[place].toFixed(2));
      bar.querySelector('.drawn').style.height = `${100 * this.heights[place]}%`;
    });
  }

  reveal(bars = null) {
    this.over = true;
    this.heights = bars ?? this.truth.map(() => 0);
    this.draw();
    this.host.classList.add('over');
    this.host.classList.toggle('alone', !bars);
    this.hint(bars ? 'Outlined: your prediction. Filled: what was measured.' : 'Filled: what was measured.');
    this.bars.forEach((bar, place) => {
      bar.querySelector('.truth').style.height = `${100 * this.truth[place]}%`;
      const said = bars ? `predicted ${bars[place].toFixed(2)}, ` : '';
      bar.setAttribute('aria-valuetext', `${said}measured ${this.truth[place].toFixed(2)}`);
      bar.setAttribute('aria-disabled', 'true');
    });
  }

  hint(words) {
    this.host.querySelector('.hint').textContent = words;
  }

  poll({ votes, mean, sd }) {
    if (mean.length !== this.bars.length) return '';
    this.bars.forEach((bar, place) => {
      const [low, high] = [clamp(mean[place] - sd[place]), clamp(mean[place] + sd[place])];
      let room = bar.querySelector('.room');
      if (!room) bar.append((room = element('div', { className: 'room' }, element('i'))));
      room.style.bottom = `${100 * low}%`;
      room.style.height = `${100 * (high - low)}%`;
      room.querySelector('i').style.bottom = `${high > low ? (100 * (mean[place] - low)) / (high - low) : 0}%`;
    });
    const off = mean.reduce((sum, each, place) => sum + Math.abs(each - this.truth[place]), 0) / mean.length;
    return `The room: dots are the means of ${votes}, lines one standard deviation. The means are off by ${written(off, 2)} on average.`;
  }

  compare({ bars }) {
    if (bars?.length !== this.truth.length) return '';
    this.reveal(bars);
    const off = this.truth.map((truth, place) => Math.abs(truth - bars[place]));
    const mean = off.reduce((sum, each) => sum + each, 0) / off.length;
    const worst = off.indexOf(Math.max(...off));
    const [by, said, is] = [mean, bars[worst], this.truth[worst]].map((value) => written(value, 2));
    return `Your bars are off by ${by} on average, most at ${this.labels[worst]}: ${said} predicted, ${is} measured.`;
  }
}
