// The button “Share” and what it opens: a room in which others follow this page, and hand-outs. Python is told nothing:
// the page writes itself down here (document/write.js).

import { isReady, isWhole, write } from '../../attention-lab.shared/document/write.js';
import { isPlain } from '../../attention-lab.shared/kit/keys.js';
import { mounting } from '../../attention-lab.shared/kit/mount.js';
import { unpack } from '../../attention-lab.shared/kit/payload.js';
import { element } from '../../attention-lab.shared/prediction/element.js';
import { lectureFile, viewFile } from '../../attention-lab.shared/sharing/files.js';
import { hidePoster, showPoster } from '../../attention-lab.shared/sharing/poster.js';
import { Room } from '../../attention-lab.shared/sharing/room.js';

const NOTES = 'attention-lab-notes'; // in this tab's own storage: a page that is drawn anew keeps them

const LARGE = 'Q'; // the key that fills the screen with a room's address

export default mounting('sharing', (root) => new Sharing(root));

class Sharing {
  constructor(root) {
    this.host = root.querySelector('.al-sharing');
    this.button = root.querySelector('.open');
    this.panel = root.querySelector('.panel');
    this.said = root.querySelector('.said');
    window.__writing = { isReady, isWhole, write }; // for a lecture's hand-out, which asks the pages in a frame of its own (files.js)
    // The browser itself opens and closes the panel, also before this script is here.
    this.panel.addEventListener('toggle', ({ newState }) => newState === 'open' && this.place());
    if (this.panel.matches(':popover-open')) this.place();
    this.panel.addEventListener('keydown', (event) => event.key !== 'Escape' && event.stopPropagation()); // no key of the lecture
    for (const [name, act] of Object.entries({ start: () => this.start(), end: () => this.end(), view: () => this.save(viewFile), lecture: () => this.save(lectureFile), fill: () => this.fill() })) {
      root.querySelector(`.${name}`).addEventListener('click', act);
    }
    this.part = (name) => root.querySelector(`.${name}`);
    this.part('notes').value = sessionStorage.getItem(NOTES) ?? '';
    this.part('notes').addEventListener('input', () => sessionStorage.setItem(NOTES, this.part('notes').value));
    if (window === window.top) this.room = Room.again((room) => this.tell(room));
    this.tell(this.room);
    this.over = new AbortController();
    window.addEventListener('keydown', (event) => this.key(event), { capture: true, signal: this.over.signal });
  }

  update(message) {
    this.given = unpack(message.slice()).header;
    for (const name of ['lecture', 'for-presenters']) this.part(name).hidden = !this.given.steps.length;
    this.part('start').disabled = Boolean(this.given.why);
    this.part('why').hidden = !this.given.why;
    this.part('why').textContent = this.given.why;
    this.host.dataset.state = 'ready';
  }

  /** Beside the button, and the keyboard in it. */
  place() {
    const at = this.button.getBoundingClientRect();
    const { offsetWidth, offsetHeight } = this.panel;
    const below = at.bottom + 4 + offsetHeight <= innerHeight;
    this.panel.style.left = `${Math.max(4, Math.min(at.right, innerWidth - 4) - offsetWidth)}px`;
    this.panel.style.top = `${Math.max(4, below ? at.bottom + 4 : at.top - 4 - offsetHeight)}px`;
    this.panel.querySelector('button:not([hidden], [disabled])').focus();
  }

  key(event) {
    if (event.key.toUpperCase() !== LARGE || !isPlain(event) || !this.room?.code) return;
    event.preventDefault();
    event.stopImmediatePropagation(); // it does not end what it begins
    if (!hidePoster()) this.fill();
  }

  /** Fill the screen with the room's address. */
  fill() {
    this.panel.hidePopover();
    showPoster(this.room);
  }

  async start() {
    this.say('Opening …');
    try {
      this.room = await Room.open((room) => this.tell(room));
      this.say('');
      this.tell(this.room);
      this.part('end').focus();
    } catch (error) {
      this.say(error.message);
    }
  }

  async end() {
    await this.room?.close();
    this.room = null;
    this.say('');
    this.tell(null);
    this.part('start').focus();
  }

  /** Show how it stands with the room; null is that there is none. */
  tell(room) {
    const open = Boolean(room?.code);
    this.part('none').hidden = open;
    this.part('room').hidden = !open;
    if (!open) hidePoster();
    this.part('open-words').textContent = open ? `Room ${room.code} · ${room.followers}` : 'Share';
    if (!open) {
      if (room?.why) this.say(room.why);
      return;
    }
    this.host.dataset.room = room.code;
    this.host.dataset.shown = room.shown ?? '';
    this.part('code').textContent = room.code;
    this.part('address').textContent = room.address ?? '';
    this.part('address').href = room.address ?? '';
    const picture = `${room.path}/qr.svg`;
    if (this.part('qr').getAttribute('src') !== picture) this.part('qr').setAttribute('src', picture);
    this.part('votes').textContent = room.votes ? `${room.votes.votes} ${room.votes.votes === 1 ? 'prediction' : 'predictions'} to the present question.` : '';
    this.part('follow').textContent = room.followers === 1 ? '1 follows.' : `${room.followers} follow.`;
    this.part('local').hidden = !room.local;
    this.part('trouble').textContent = room.trouble ?? '';
  }

  /** Write a hand-out and hand it to the reader. */
  async save(make) {
    const buttons = [this.part('view'), this.part('lecture')];
    for (const each of buttons) each.disabled = true;
    try {
      const notes = { notes: this.part('notes').value.trim(), presenters: this.part('presenters').checked };
      const { text, name } = await make(this.given, notes, (sentence) => this.say(sentence));
      const link = element('a', { href: URL.createObjectURL(new Blob([text], { type: 'text/html' })), download: `${name}.html` });
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
      this.say(`Saved as ${name}.html, ${(text.length / 1e6).toFixed(1)} MB.`);
    } catch (error) {
      this.say(`This could not be written: ${error.message}`);
    }
    for (const each of buttons) each.disabled = false;
  }

  say(sentence) {
    this.said.textContent = sentence;
  }

  dispose() {
    this.over.abort();
    this.room?.rest();
  }
}
