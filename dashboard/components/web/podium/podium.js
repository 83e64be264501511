// Beside a lecture's strip: brings what a step marks into sight, and listens for the keys of whoever gives the lecture.
// A point blacks the screen until the next key, and so does B where no button of the page bears it; R returns to the step,
// + and − set the size of all letters, which this browser remembers. It tells the presenter's window
// (server/presenter/presenter.js) what the step is, and takes keys from it.

import { bring } from '../../attention-lab.shared/kit/bring.js';
import { isPlain } from '../../attention-lab.shared/kit/keys.js';
import { mounting, standing } from '../../attention-lab.shared/kit/mount.js';
import { unpack } from '../../attention-lab.shared/kit/payload.js';
import { isSettled, main } from '../../attention-lab.shared/kit/streamlit_private.js';

const CHANNEL = 'attention-lab-lecture';
const ON = ['ArrowRight', 'PageDown'];
const KEPT = 'attention-lab-letters';
const [SMALLEST, LARGEST, STEP] = [70, 180, 10]; // of the size of letters, in per cent
const READ = 400; // milliseconds for which a question, or its answer, has to be seen before a press can be meant for it

export default mounting('podium', (root) => new Podium(root.querySelector('.al-podium')));

class Podium {
  constructor(host) {
    this.host = host;
    this.over = new AbortController();
    // The pages of a hand-out (sharing/files.js) are given to nobody.
    this.given = window === window.top;
    document.addEventListener('keydown', (event) => this.key(event), { signal: this.over.signal, capture: true });
    // After all others: a button that bears B has taken it by then.
    window.addEventListener('keydown', (event) => this.last(event), { signal: this.over.signal });
    document.addEventListener('click', (event) => this.clicked(event), { signal: this.over.signal, capture: true });
    // What was covered until one had predicted it (see prediction.js) is shown now.
    document.addEventListener('attention-lab-shown', ({ detail }) => this.answered(detail), { signal: this.over.signal });
    this.channel = this.given ? new BroadcastChannel(CHANNEL) : { postMessage() {}, addEventListener() {}, close() {} };
    this.channel.addEventListener('message', ({ data }) => this.heard(data));
    this.letters(0);
    host.__podium = this; // for the document of the page (document/write.js)
    host.dataset.state = 'ready';
  }

  update(message) {
    const { look, until, step, presenter, asks, explored } = unpack(message.slice()).header;
    const moved = step !== this.step || explored !== this.explored; // more controls push what is marked away
    Object.assign(this, { presenter, until, asks, look, step, explored });
    this.report();
    if (moved) this.show();
  }

  /** Tell the presenter's window where the lecture is; a page that is covered still asks. */
  report() {
    const question = isCovered() ? this.presenter.question : '';
    this.channel.postMessage({ step: { ...this.presenter, covered: question, verdict: this.host.textContent } });
  }

  heard({ hello, key, at }) {
    if (hello && this.presenter) this.report();
    if (!key) return;
    this.at = at - performance.timeOrigin; // when it was pressed in that window
    document.body.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }));
    this.at = undefined;
  }

  /** Say beside the words how good a prediction was; `far` is one that needs no look at its own picture. */
  answered({ verdict, far }) {
    this.host.textContent = verdict;
    this.host.hidden = !verdict;
    this.report();
    if (far) this.show();
  }

  /** Bring its question into sight, then what the step marks, below its words; where it marks nothing, the page's beginning. */
  show() {
    const { step, look } = this;
    const place = () => (isCovered() ? 'prediction' : look);
    bring(() => (this.step !== step ? null : place() ? document.querySelector(`.st-key-${CSS.escape(place())}`) : main()));
  }

  key(event) {
    if (this.black) {
      event.preventDefault();
      event.stopImmediatePropagation();
      return this.light();
    }
    if (!isPlain(event)) return;
    if (ON.includes(event.key)) {
      if (this.stops(this.at ?? event.timeStamp)) take(event);
      return;
    }
    const home = document.querySelector('.st-key-lecture-return button');
    if (event.key === '.') this.darken();
    else if (event.key.toUpperCase() === 'R' && home) home.click(); // else it is Streamlit's own key
    else if (event.key === '+') this.letters(STEP);
    else if (event.key === '-' || event.key === '−') this.letters(-STEP);
    else return;
    take(event);
  }

  /** A click on Next is what its key is. */
  clicked(event) {
    const next = event.composedPath().some((each) => each.matches?.('.st-key-lecture-next'));
    if (next && this.given && this.stops(event.timeStamp)) take(event);
  }

  /**
   * Does what was pressed then to go on stay at this step? At its question it shows the answer. It does nothing before one
   * can have read the question, and then the answer: it was meant for what stood there before.
   */
  stops(pressed) {
    const questions = standing().flatMap(({ name, host }) => (name === 'prediction' ? [host.__prediction] : []));
    const question = questions.find(({ asked }) => asked?.of === this.step); // that of the step before may still stand
    if (!question) return this.asks && !(isSettled() && !questions.length); // one that cannot be had is not asked
    if (pressed < question.since + READ) return true;
    if (question.shown) return false;
    document.dispatchEvent(new Event('attention-lab-show'));
    return true;
  }

  last(event) {
    if (isPlain(event) && !event.defaultPrevented && event.key.toUpperCase() === 'B') this.darken();
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
    if (by) this.show();
  }

  dispose() {
    this.over.abort();
    this.channel.postMessage({ over: true });
    this.channel.close();
    this.light();
    document.documentElement.style.fontSize = ''; // the lecture is over
  }
}

/** Let nothing else hear of an event. */
function take(event) {
  event.preventDefault();
  event.stopImmediatePropagation();
}

const isCovered = () => document.querySelector('.st-key-prediction') !== null && !('predicted' in document.documentElement.dataset);
