// Beside a lecture's strip: brings what a step marks into sight, and listens for the keys of whoever gives the lecture.
// B blacks the screen until the next key, R returns to the step, + and − set the size of all letters, which this browser
// remembers.

import { mounting } from '../../attention-lab.shared/kit/mount.js';
import { unpack } from '../../attention-lab.shared/kit/payload.js';
import { page } from '../../attention-lab.shared/kit/streamlit_private.js';

const TYPING = 'input, textarea, select, [contenteditable]:not([contenteditable=false])';
const KEPT = 'attention-lab-letters';
const [SMALLEST, LARGEST, STEP] = [70, 180, 10]; // of the size of letters, in per cent
const AIR = 12; // pixels around what is marked
const SETTLES = 4000; // milliseconds after which a page has its heights
const WAITS = 15000; // milliseconds within which what is marked has come

export default mounting((root) => new Podium(root.querySelector('.al-podium')));

class Podium {
  constructor(host) {
    this.host = host;
    this.over = new AbortController();
    // Before any other: in a lecture B is no button's key.
    document.addEventListener('keydown', (event) => this.key(event), { signal: this.over.signal, capture: true });
    for (const by of ['wheel', 'touchmove', 'pointerdown'])
      document.addEventListener(by, () => (this.scrolled = true), { signal: this.over.signal, capture: true, passive: true });
    this.letters(0);
    host.dataset.state = 'ready';
  }

  update(message) {
    const { look, step } = unpack(message.slice()).header;
    if (step === this.step) return;
    this.step = step;
    this.began = performance.now();
    this.scrolled = false;
    this.bring(look, step);
  }

  /** Scroll as little as shows the marked element below the words, once it is drawn; not after the reader has scrolled. */
  bring(look, step) {
    const main = page();
    const wait = () => {
      if (this.step !== step || performance.now() - this.began > WAITS || this.scrolled) return;
      const place = look && document.querySelector(`.st-key-${CSS.escape(look)}`);
      if (look && (!place?.clientHeight || place.querySelector('[aria-busy=true]'))) return void setTimeout(wait, 100);
      const words = document.querySelector('.st-key-lecture')?.getBoundingClientRect().bottom ?? 0;
      const { top, bottom } = place ? place.getBoundingClientRect() : { top: -Infinity, bottom: 0 };
      const [above, below] = [top - words - AIR, bottom - innerHeight + AIR];
      const by = above < 0 || above < below ? above : Math.max(below, 0);
      main.scrollBy({ top: Math.max(by, -main.scrollTop), behavior: 'instant' });
      if (performance.now() - this.began < SETTLES) setTimeout(wait, 200); // what stands above it may still grow
    };
    setTimeout(wait, 300); // the page of the step before may still stand
  }

  key(event) {
    if (this.black) {
      event.preventDefault();
      event.stopImmediatePropagation();
      return this.light();
    }
    if (event.ctrlKey || event.metaKey || event.altKey || event.composedPath()[0].matches?.(TYPING)) return;
    const home = document.querySelector('.st-key-lecture-return button');
    if (event.key.toUpperCase() === 'B') this.darken();
    else if (event.key.toUpperCase() === 'R' && home) home.click(); // else it is Streamlit's own key
    else if (event.key === '+') this.letters(STEP);
    else if (event.key === '-' || event.key === '−') this.letters(-STEP);
    else return;
    event.preventDefault();
    event.stopImmediatePropagation();
  }

  darken() {
    this.black = document.createElement('div');
    this.black.className = 'al-podium-black';
    this.black.setAttribute('role', 'status');
    this.black.textContent = 'The screen is black. Any key brings it back.'; // in black, for a screen reader
    this.black.style.cssText = 'position:fixed;inset:0;z-index:999999;background:#000;color:#000;cursor:none';
    this.black.addEventListener('click', () => this.light());
    document.body.append(this.black);
  }

  light() {
    this.black?.remove();
    this.black = null;
  }

  /** Make all letters larger or smaller by so many per cent. */
  letters(by) {
    const kept = Number(localStorage.getItem(KEPT)) || 100;
    const size = Math.min(LARGEST, Math.max(SMALLEST, kept + by));
    if (by) localStorage.setItem(KEPT, String(size));
    document.documentElement.style.fontSize = size === 100 ? '' : `${size}%`;
  }

  dispose() {
    this.over.abort();
    this.light();
    document.documentElement.style.fontSize = ''; // the lecture is over
  }
}
