// The controls under the film: play, step, scrub, speed, loop. They know places of the film (stops), not what is shown.

import { marksOf } from './charts.js';
import { nearest, place } from './reel.js';

const ICONS = {
  play: 'M8 5v14l11-7z',
  pause: 'M6 5h4v14H6zM14 5h4v14h-4z',
  back: 'M6 6h2v12H6zM20 6v12L9.5 12z',
  forward: 'M16 6h2v12h-2zM4 18V6l10.5 6z',
};
const THUMB = 16; // CSS pixels of the scrubber's thumb: its middle never reaches the ends of the track

export class Transport {
  /** `on` holds what the controls do: toggle, go(stop), step(by), speed(factor), loop(on), use(step). */
  constructor(root, on) {
    const find = (name) => root.querySelector(`.${name}`);
    this.host = find('transport');
    this.scrubber = find('scrubber');
    this.ticks = find('ticks');
    this.moment = find('moment');
    this.playing = find('play');
    this.now = find('now');
    this.looping = find('loop');
    this.using = find('use');
    this.speeds = [...find('speeds').children];
    draw(find('back'), ICONS.back);
    draw(find('forward'), ICONS.forward);
    draw(this.playing, ICONS.play);
    this.playing.addEventListener('click', () => on.toggle());
    find('back').addEventListener('click', () => on.step(-1));
    find('forward').addEventListener('click', () => on.step(1));
    this.scrubber.addEventListener('input', () => on.go(Number(this.scrubber.value)));
    this.moment.addEventListener('click', () => on.go(this.marked));
    this.looping.addEventListener('click', () => on.loop());
    this.using.addEventListener('click', () => on.use(this.usable));
    for (const button of this.speeds) button.addEventListener('click', () => on.speed(Number(button.dataset.speed)));
  }

  /** Take the stops of a reel: one tick each, numbers where there is room, and the moment in words. */
  lay(reel) {
    this.reel = reel;
    const { stops, moment } = reel;
    this.host.hidden = reel.live || reel.replay || stops.length < 2;
    if (this.host.hidden) return;
    this.scrubber.max = stops.length - 1;
    const width = this.scrubber.clientWidth;
    const left = (at) => `calc(${THUMB / 2}px + ${at / (stops.length - 1)} * (100% - ${THUMB}px))`;
    this.ticks.replaceChildren(
      ...stops.map((_, i) => {
        const tick = document.createElement('i');
        tick.style.left = left(i);
        return tick;
      })
    );
    const taken = [];
    const wanted = [stops[0], stops.at(-1), ...(moment ? [moment.step] : []), ...marksOf(stops), ...stops.toReversed()];
    for (const step of wanted) {
      const at = place(stops, step);
      const x = (at / (stops.length - 1)) * (width - THUMB);
      const half = 4 * String(step).length + 5;
      if (!stops.includes(step) || taken.some(([low, high]) => x + half > low && x - half < high)) continue;
      taken.push([x - half, x + half]);
      const number = document.createElement('b');
      number.textContent = step;
      number.style.left = left(at);
      this.ticks.append(number);
    }
    this.markMoment(moment, width);
    this.using.hidden = !reel.uses;
  }

  /** The moment in words, under its own tick, wholly within the line. */
  markMoment(moment, width) {
    this.moment.hidden = !moment;
    if (!moment) return;
    const { stops } = this.reel;
    this.marked = stops.indexOf(moment.step);
    this.ticks.children[this.marked].className = 'marked';
    this.moment.textContent = moment.words;
    const middle = THUMB / 2 + (this.marked / (stops.length - 1)) * (width - THUMB);
    const half = this.moment.offsetWidth / 2;
    this.moment.style.left = `${Math.max(0, Math.min(width - 2 * half, middle - half))}px`;
  }

  /** Show where the film stands. */
  show({ stop, step, playing, speed, loop }) {
    const { stops, moment, kept } = this.reel;
    this.scrubber.value = stop;
    const marked = moment && stops[stop] === moment.step ? `: ${moment.words}` : '';
    this.scrubber.setAttribute('aria-valuetext', `Step ${stops[stop]}, ${stop + 1} of ${stops.length}${marked}`);
    this.now.textContent = `Step ${step}`;
    if (this.playing.dataset.playing !== String(playing)) {
      this.playing.dataset.playing = playing;
      const name = playing ? 'Pause' : 'Play';
      this.playing.setAttribute('aria-label', name);
      this.playing.title = `${name} (Space)`;
      draw(this.playing, playing ? ICONS.pause : ICONS.play);
    }
    for (const button of this.speeds) button.setAttribute('aria-pressed', Number(button.dataset.speed) === speed);
    this.looping.setAttribute('aria-pressed', loop);
    if (this.using.hidden) return;
    this.usable = nearest(kept, step);
    const which = this.usable === step ? '' : ', the nearest kept,';
    this.using.textContent = `Use step ${this.usable}${which} on every page`;
  }
}

function draw(button, path) {
  const make = (name, attributes) => {
    const element = document.createElementNS('http://www.w3.org/2000/svg', name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  };
  const icon = make('svg', { viewBox: '0 0 24 24', 'aria-hidden': 'true' });
  icon.append(make('path', { d: path, fill: 'currentColor' }));
  button.replaceChildren(icon);
}
