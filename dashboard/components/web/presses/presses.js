// A button that counts how often it was pressed, by click or by key. The count is what Python is told, so that presses
// which come faster than it can answer are told together: Streamlit makes one of a button's that wait for each other.
//
// While the page is being drawn a press waits. A rerun that begins in the midst of another may name a place on the page
// that the browser has just taken away, and then nothing is shown any more ("Bad delta path", Streamlit 1.67).
//
// Python may say how many presses count at most before it has answered them: what comes after these was pressed while
// something else stood on the screen.

import { isPlain } from '../../attention-lab.shared/kit/keys.js';
import { mounting } from '../../attention-lab.shared/kit/mount.js';
import { unpack } from '../../attention-lab.shared/kit/payload.js';
import { isRerunning, onReconnect, placeOf } from '../../attention-lab.shared/kit/streamlit_private.js';

const BEGINS = 150; // milliseconds in which what was told has begun to be answered
const PATIENCE = 2000; // milliseconds for which a press waits at most: a page may measure for longer

export default mounting('presses', (root) => {
  placeOf(root)?.classList.add('al-presses'); // a step of a lecture may leave it out (frame/guided/lecture.py)
  return new Presses(root.querySelector('button'));
});

class Presses {
  constructor(host) {
    this.host = host;
    host.__presses = this; // for tests
    this.since = Date.now(); // another place counts anew
    this.count = 0;
    this.told = 0; // how many of them Python has been told of
    this.answered = 0; // how many it had answered when it drew this last
    this.limit = Infinity; // the count at which presses begin to be lost
    this.keys = [];
    this.begins = 0; // until when what was told last has not begun to be answered
    this.waiting = undefined; // the timer of a press that waits
    this.over = new AbortController();
    host.addEventListener('click', () => this.press());
    // A server that was started anew begins a session with the first it hears: with this, not with the next press.
    this.still = onReconnect(() => this.tell?.('presses', { since: this.since, count: this.count, again: Date.now() }));
  }

  update(message, _, tell) {
    const { icon, label, letter, keys, help, disabled, primary, first, most, answered } = unpack(message.slice()).header;
    if (!this.tell) this.listen(first);
    this.tell = tell;
    // A session that has begun anew has answered none of those that the one before was told.
    this.answered = answered?.since === this.since ? answered.count : this.told;
    this.limit = most === null ? Infinity : most + this.answered;
    this.host.disabled = disabled;
    this.host.style.visibility = '';
    this.host.className = primary ? 'primary' : '';
    this.keys = keys.map((key) => key.toUpperCase());
    const parts = { icon, label, kbd: letter };
    for (const [name, words] of Object.entries(parts)) this.host.querySelector(`.${name}`).textContent = words;
    this.host.querySelector('.icon').hidden = !icon;
    this.host.title = help;
    this.host.setAttribute('aria-label', label);
    this.host.setAttribute('aria-keyshortcuts', keys.join(' '));
  }

  /** Hear of keys; `first`, before the page's other buttons that bear the same one. */
  listen(first) {
    document.addEventListener('keydown', (event) => this.key(event), { signal: this.over.signal, capture: first });
  }

  key(event) {
    const key = event.key.toUpperCase();
    if (event.defaultPrevented || !this.keys.includes(key) || !isPlain(event)) return;
    if (this.host.disabled && key.length > 1) return;
    if (!this.host.checkVisibility()) return; // a step of a lecture shows no button that bears this key
    event.preventDefault(); // the page does not scroll, and in a lecture the screen stays
    if (!this.host.disabled) this.press();
  }

  press() {
    if (this.count >= this.limit) return this.remind();
    this.count += 1;
    if (this.waiting === undefined) this.hand(performance.now());
  }

  /** Tell Python of the presses, once it has answered those of which it was told. */
  hand(pressed) {
    const now = performance.now();
    const busy = isRerunning() || now < this.begins;
    if (busy && now - pressed < PATIENCE) {
      this.waiting = setTimeout(() => this.hand(pressed), 16);
      return;
    }
    this.waiting = undefined;
    this.begins = now + BEGINS;
    this.told = this.count;
    this.tell('presses', { since: this.since, count: this.count });
  }

  /** What was told with a part of the page that is gone is answered, and not drawn: let all be drawn. */
  remind() {
    const now = performance.now();
    if (this.told <= this.answered || isRerunning() || now < this.begins + PATIENCE) return;
    this.begins = now + BEGINS;
    this.tell('presses', { since: this.since, count: this.count, again: Date.now() });
  }

  dispose() {
    if (this.waiting !== undefined) this.hand(-Infinity); // none is lost
    clearTimeout(this.waiting);
    this.over.abort();
    this.still();
  }
}
