// Beside what has come to the page because of a key or a click, wherever the reader was then: brings it into sight, once.

import { bring } from '../../attention-lab.shared/kit/bring.js';
import { mounting } from '../../attention-lab.shared/kit/mount.js';
import { uncover } from '../../attention-lab.shared/kit/streamlit_private.js';
import { unpack } from '../../attention-lab.shared/kit/payload.js';

let last = ''; // what came last: it is not brought again on the next page

export default mounting('arrival', (root) => new Arrival(root.querySelector('.al-arrival')));

class Arrival {
  constructor(host) {
    this.host = host;
  }

  update(message) {
    const { what, key, growing } = unpack(message.slice()).header;
    this.growing = growing;
    if (what === last) return;
    last = what;
    uncover();
    const find = () => document.querySelector(`.st-key-${CSS.escape(key)}`);
    bring(find, { growing: () => this.growing && this.host.isConnected });
  }

  dispose() {}
}
