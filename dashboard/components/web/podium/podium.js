// Beside a lecture's strip: brings what a step marks into sight, and listens for the keys of whoever gives the lecture.
// A point blacks the screen until the next key, and so does B where no button of the page bears it; R returns to the step,
// + and − set the size of all letters, which this browser remembers. It tells the presenter's window
// (server/presenter/presenter.js) what the step is, and takes keys from it.

import { mounting } from '../../attention-lab.shared/kit/mount.js';
import { unpack } from '../../attention-lab.shared/kit/payload.js';
import { isSettled, page } from '../../attention-lab.shared/kit/streamlit_private.js';

const TYPING = 'input, textarea, select, [contenteditable]:not([contenteditable=false])';
const CHANNEL = 'attention-lab-lecture';
const ON = ['ArrowRight', 'PageDown'];
const KEPT = 'attention-lab-letters';
const [SMALLEST, LARGEST, STEP] = [70, 180, 10]; // of the size of letters, in per cent
const AIR = 12; // pixels around what is marked
const SETTLES = 4000; // milliseconds after which a page that was drawn has its heights
const WAITS = 15000; // milliseconds within which what is marked has come

/** Is it a key by itself, and no letter of a text that is typed? */
const plain = (event) =>
  !(event.ctrlKey || event.metaKey || event.altKey || event.composedPath()[0].matches?.(TYPING));

export default mounting('podium', (root) => new Podium(root.querySelector('.al-podium')));

class Podium {
  constructor(host) {
    this.host = host;
    this.over = new AbortController();
    document.addEventListener('keydown', (event) => this.key(event), { signal: this.over.signal, capture: true });
    // After all others: a button that bears B has taken it by then.
    window.addEventListener('keydown', (event) => this.last(event), { signal: this.over.signal });
    for (const by of ['wheel', 'touchmove', 'pointerdown'])
      document.addEventListener(by, () => (this.scrolled = true), { signal: this.over.signal, capture: true, passive: true });
    // What was covered until one had predicted it (see prediction.js) is shown now.
    document.addEventListener('attention-lab-shown', ({ detail }) => this.answered(detail), { signal: this.over.signal });
    // The pages of a hand-out (sharing/files.js) are given to nobody.
    this.channel = window === window.top ? new BroadcastChannel(CHANNEL) : { postMessage() {}, addEventListener() {}, close() {} };
    this.channel.addEventListener('message', ({ data }) => this.heard(data));
    this.letters(0);
    host.__podium = this; // for the document of the page (document/write.js)
    host.dataset.state = 'ready';
  }

  update(message) {
    const { look, until, step, presenter } = unpack(message.slice()).header;
    Object.assign(this, { presenter, until });
    this.report();
    if (step === this.step) return;
    Object.assign(this, { look, step });
    this.show();
  }

  /** Tell the presenter's window where the lecture is; a page that is covered still asks. */
  report() {
    const question = isCovered() ? this.presenter.question : '';
    this.channel.postMessage({ step: { ...this.presenter, covered: question, verdict: this.host.textContent } });
  }

  heard({ hello, key }) {
    if (hello && this.presenter) this.report();
    if (key) document.body.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }));
  }

  /** Say beside the words how good a prediction was; `far` is one that needs no look at its own picture. */
  answered({ verdict, far }) {
    this.host.textContent = verdict;
    this.host.hidden = !verdict;
    this.report();
    if (far) this.show();
  }

  show() {
    this.began = performance.now();
    this.scrolled = false;
    this.bring(this.look, this.step);
  }

  /** Scroll as little as shows the marked element below the words, once it is drawn; not after the reader has scrolled. */
  bring(look, step) {
    const main = page();
    let settled = this.began;
    const wait = () => {
      if (this.step !== step || performance.now() - this.began > WAITS || this.scrolled) return;
      const place = look && document.querySelector(`.st-key-${CSS.escape(look)}`);
      if (look && (!place?.clientHeight || place.querySelector('[aria-busy=true]'))) return void setTimeout(wait, 100);
      const words = document.querySelector('.st-key-lecture')?.getBoundingClientRect().bottom ?? 0;
      const { top, bottom } = place ? place.getBoundingClientRect() : { top: -Infinity, bottom: 0 };
      const [above, below] = [top - words - AIR, bottom - innerHeight + AIR];
      const by = above < 0 || above < below ? above : Math.max(below, 0);
      main.scrollBy({ top: Math.max(by, -main.scrollTop), behavior: 'instant' });
      if (!isSettled()) settled = performance.now();
      if (performance.now() - settled < SETTLES) setTimeout(wait, 200); // what stands above it may still grow
    };
    setTimeout(wait, 300); // the page of the step before may still stand
  }

  key(event) {
    if (this.black) {
      event.preventDefault();
      event.stopImmediatePropagation();
      return this.light();
    }
    if (!plain(event)) return;
    const path = event.composedPath();
    if (ON.includes(event.key) && isCovered() && !path.some((each) => each.matches?.('.al-prediction'))) {
      document.dispatchEvent(new Event('attention-lab-show')); // first the answer, then the next step
      event.preventDefault();
      return event.stopImmediatePropagation();
    }
    const home = document.querySelector('.st-key-lecture-return button');
    if (event.key === '.') this.darken();
    else if (event.key.toUpperCase() === 'R' && home) home.click(); // else it is Streamlit's own key
    else if (event.key === '+') this.letters(STEP);
    else if (event.key === '-' || event.key === '−') this.letters(-STEP);
    else return;
    event.preventDefault();
    event.stopImmediatePropagation();
  }

  last(event) {
    if (plain(event) && !event.defaultPrevented && event.key.toUpperCase() === 'B') this.darken();
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
    this.channel.postMessage({ over: true });
    this.channel.close();
    this.light();
    document.documentElement.style.fontSize = ''; // the lecture is over
  }
}

const isCovered = () => document.querySelector('.st-key-prediction') !== null && !('predicted' in document.documentElement.dataset);
