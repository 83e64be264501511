// A room in which others follow this page (server/rooms/): whatever stands here still is written down and sent. The room
// belongs to this tab, and survives a reload of it.

import { compressed } from '../kit/gzip.js';
import { isReady, write } from '../document/write.js';
import { root } from '../kit/root.js';

const KEPT = 'attention-lab-room'; // {code, key} in the storage of the tab
const LOOKS = 50; // ms between two looks at a page that has changed
const STARTED = 300; // ms after a document before the next is sent
const COUNTS = 1000; // ms between two counts of followers and votes
const CHANNEL = 'attention-lab-lecture'; // to the presenter's window (podium.js)

export class Room {
  /** `tell(room)` is called whenever something about it has changed. */
  constructor({ code, key }, tell) {
    Object.assign(this, { code, key, tell, followers: 0, votes: null, sent: '', dirty: true, sentAt: -Infinity });
    this.path = `${root}room/${code}`;
    this.over = new AbortController();
    this.observer = new MutationObserver(() => (this.dirty = true));
    this.observer.observe(document.body, { childList: true, subtree: true, characterData: true, attributes: true, attributeFilter: ['aria-busy', 'data-drawn'] });
    for (const news of ['attention-lab-drawn', 'attention-lab-shown']) document.addEventListener(news, () => (this.dirty = true), { signal: this.over.signal });
    this.looking = setInterval(() => this.look(), LOOKS);
    this.counting = setInterval(() => this.count(), COUNTS);
    this.channel = new BroadcastChannel(CHANNEL);
    fetch(`${this.path}/address`)
      .then((answer) => answer.json())
      .then(({ address, local }) => this.changed({ address, local }))
      .catch(() => {});
  }

  /** Open one. Throws an Error in the server's words where there can be none. */
  static async open(tell) {
    const answer = await fetch(`${root}rooms`, { method: 'POST' });
    const said = await answer.json();
    if (!answer.ok) throw new Error(said.error);
    sessionStorage.setItem(KEPT, JSON.stringify({ code: said.code, key: said.key }));
    return new Room(said, tell);
  }

  /** The room that this tab had before it was loaded anew, or null. */
  static again(tell) {
    const kept = JSON.parse(sessionStorage.getItem(KEPT) ?? 'null');
    return kept && new Room(kept, tell);
  }

  changed(what) {
    Object.assign(this, what);
    this.tell(this);
  }

  /** Send the page, if it has changed and stands still. */
  async look() {
    if (!this.dirty || this.sending || performance.now() - this.sentAt < STARTED || !isReady()) return;
    this.dirty = false;
    this.sending = true;
    try {
      const document_ = write();
      const text = JSON.stringify({ ...document_, made: '' });
      if (text === this.sent) return;
      const query = new URLSearchParams({ question: document_.question, kind: document_.kind, shown: document_.covered ? '0' : '1' });
      const body = await compressed(JSON.stringify(document_));
      const answer = await this.ask(`document?${query}`, { method: 'PUT', body });
      if (!answer) return;
      this.sent = text;
      this.sentAt = performance.now();
      this.changed({ trouble: '', shown: answer.document, followers: answer.followers });
    } catch (error) {
      this.failed(error); // what is written down may just be taken away
    } finally {
      this.sending = false;
    }
  }

  async count() {
    const votes = await this.ask('votes');
    if (!votes || this.over.signal.aborted) return; // the room may have ended meanwhile
    const news = JSON.stringify(votes);
    if (news === this.counted) return;
    this.counted = news;
    this.changed({ followers: votes.followers, votes: votes.question ? votes : null, trouble: '' });
    this.channel.postMessage({ votes });
    document.dispatchEvent(new CustomEvent('attention-lab-votes', { detail: votes }));
  }

  /** What the server answers; null where it does not, which is said, and tried again with the next look. */
  async ask(what, options = {}) {
    try {
      const answer = await fetch(`${this.path}/${what}`, { ...options, headers: { 'X-Room-Key': this.key } });
      if (answer.status === 404 || answer.status === 403) return this.lost();
      if (!answer.ok) throw new Error((await answer.json()).error);
      return await answer.json();
    } catch (error) {
      return this.failed(error);
    }
  }

  failed(error) {
    this.dirty = true;
    this.sentAt = performance.now() + COUNTS;
    this.changed({ trouble: `Nobody is shown this page at the moment (${error.message}). Trying again …` });
    return null;
  }

  /** The room has ended on the server. */
  lost() {
    this.rest();
    sessionStorage.removeItem(KEPT);
    this.tell({ why: 'The room is over: it was closed, or four hours have passed.' });
    return null;
  }

  async close() {
    this.rest();
    sessionStorage.removeItem(KEPT);
    await fetch(this.path, { method: 'DELETE', headers: { 'X-Room-Key': this.key } }).catch(() => {});
  }

  /** Look no more, here: the page goes on elsewhere, or the room is over. */
  rest() {
    clearInterval(this.looking);
    clearInterval(this.counting);
    this.observer.disconnect();
    this.over.abort();
    this.channel.close();
  }
}
