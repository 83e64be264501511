// Beside what has come to the page because of a key or a click: closes the sidebar where it lies over that, once.

import { mounting } from '../../attention-lab.shared/kit/mount.js';
import { uncover } from '../../attention-lab.shared/kit/streamlit_private.js';
import { unpack } from '../../attention-lab.shared/kit/payload.js';

let last = ''; // what came last: the sidebar may be opened again beside it

export default mounting('arrival', (root) => new Arrival(root.querySelector('.al-arrival')));

class Arrival {
  constructor(host) {
    this.host = host;
  }

  update(message) {
    const { what } = unpack(message.slice()).header;
    if (what !== last) uncover();
    last = what;
  }

  dispose() {}
}
