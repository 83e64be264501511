// A button that counts how often it was pressed, by click or by key. The count is what Python is told, so that presses
// which come faster than it can answer are told together: Streamlit makes one of a button's that wait for each other.

import { mounting } from '../../attention-lab.shared/kit/mount.js';
import { unpack } from '../../attention-lab.shared/kit/payload.js';
import { onReconnect } from '../../attention-lab.shared/kit/streamlit_private.js';

const TYPING = 'input, textarea, select, [contenteditable]:not([contenteditable=false])';
// What the arrow keys move by itself, where it has the focus.
const MOVED = '[role=slider], [role=radio], [role=tab], [role=menuitem], [role=option], [role=combobox], [role=grid], canvas';

export default mounting('presses', (root) => new Presses(root.querySelector('button')));

class Presses {
  constructor(host) {
    this.host = host;
    this.since = Date.now(); // another place counts anew
    this.count = 0;
    this.keys = [];
    this.over = new AbortController();
    host.addEventListener('click', () => this.press());
    // A server that was started anew begins a session with the first it hears: with this, not with the next press.
    this.still = onReconnect(() => this.tell?.('presses', { since: this.since, count: this.count, again: Date.now() }));
    document.addEventListener('keydown', (event) => this.key(event), { signal: this.over.signal });
  }

  update(message, _, tell) {
    const { icon, label, letter, keys, help, disabled, primary } = unpack(message.slice()).header;
    this.tell = tell;
    this.host.disabled = disabled;
    this.host.className = primary ? 'primary' : '';
    this.keys = keys.map((key) => key.toUpperCase());
    const parts = { icon, label, kbd: letter };
    for (const [name, words] of Object.entries(parts)) this.host.querySelector(`.${name}`).textContent = words;
    this.host.querySelector('.icon').hidden = !icon;
    this.host.title = help;
    this.host.setAttribute('aria-label', label);
    this.host.setAttribute('aria-keyshortcuts', keys.join(' '));
  }

  key(event) {
    const plain = !event.ctrlKey && !event.metaKey && !event.altKey;
    const key = event.key.toUpperCase();
    if (!plain || event.defaultPrevented || !this.keys.includes(key)) return;
    if (event.composedPath()[0].matches?.(key.length === 1 ? TYPING : `${TYPING}, ${MOVED}`)) return;
    if (this.host.disabled && key.length > 1) return;
    event.preventDefault(); // the page does not scroll, and in a lecture the screen stays
    if (!this.host.disabled) this.press();
  }

  press() {
    this.tell('presses', { since: this.since, count: ++this.count });
  }

  dispose() {
    this.over.abort();
    this.still();
  }
}
