// Asks for a fragment anew when the server has told of something newer than what is drawn in it. Where the server cannot
// tell, it asks by the clock. It asks nothing while its tab is hidden. It lets a reader's click or key go first, and waits
// while the page is being drawn: each request tells all widgets' values and the page, and while a choice is on its way
// these may be those of before.

import { follow } from '../../attention-lab.shared/news/socket.js';
import { mounting } from '../../attention-lab.shared/kit/mount.js';
import { unpack } from '../../attention-lab.shared/kit/payload.js';
import { isRerunning } from '../../attention-lab.shared/kit/streamlit_private.js';

const BUSY = 50; // milliseconds between two looks at whether the page is still being drawn
const BEGINS = 150; // milliseconds in which a click or key has begun to be answered
const PATIENCE = 2000; // milliseconds after which what was asked for and has not come is asked for again

let touched = -Infinity; // when the reader clicked or pressed a key last
const touch = () => (touched = performance.now());
for (const kind of ['pointerdown', 'pointerup', 'keydown', 'change']) document.addEventListener(kind, touch, { capture: true });

export default mounting('news', (root) => new News(root.querySelector('.al-news')));

class News {
  constructor(host) {
    this.host = host;
    this.token = undefined;
    this.newest = undefined; // the version that was told of last; null is that none will be, undefined that none was yet
    this.asked = performance.now(); // when it was asked for last; it has just been drawn
    this.wanted = 0; // for which version
    this.leave = () => {};
    this.seen = new AbortController();
    document.addEventListener('visibilitychange', () => this.consider(), { signal: this.seen.signal });
  }

  update(message, fire) {
    const { token, version, every, awaits } = unpack(message.slice()).header;
    this.host.toggleAttribute('data-awaits', awaits); // for who writes the page down (kit/streamlit_private.js)
    Object.assign(this, { fire, drawn: version, every: 1000 * every });
    if (token !== this.token) {
      this.leave();
      this.token = token;
      this.newest = token === null ? null : undefined;
      this.leave = token === null ? () => {} : follow(token, (newest) => this.hear(newest));
    }
    this.consider();
  }

  hear(newest) {
    this.newest = newest;
    this.consider();
  }

  /** Ask for the fragment anew, if there is a reason and it is time; else look again when it will be. */
  consider() {
    clearTimeout(this.timer);
    if (document.hidden || this.newest === undefined || (this.newest !== null && this.newest <= this.drawn)) return;
    const now = performance.now();
    const comes = this.newest !== null && this.wanted > this.drawn; // what was asked for last has not come yet
    const left = Math.max(this.asked + Math.max(this.every, comes ? PATIENCE : 0), touched + BEGINS) - now;
    if (left > 0 || isRerunning()) {
      this.timer = setTimeout(() => this.consider(), Math.max(left, BUSY));
      return;
    }
    this.asked = now;
    this.wanted = this.newest ?? 0;
    this.host.dataset.asked = Number(this.host.dataset.asked ?? 0) + 1;
    this.fire('news', now);
    this.timer = setTimeout(() => this.consider(), this.every);
  }

  dispose() {
    clearTimeout(this.timer);
    this.seen.abort();
    this.leave();
  }
}
