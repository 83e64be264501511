// The button that saves a table or a strip: what it saves stands beside it in the page, as st.html drew it.

import { mounting } from '../../attention-lab.shared/kit/mount.js';
import { unpack } from '../../attention-lab.shared/kit/payload.js';
import { drawnHtml } from '../../attention-lab.shared/kit/streamlit_private.js';
import { readTheme } from '../../attention-lab.shared/kit/theme.js';
import { menu } from '../../attention-lab.shared/takeaway/menu.js';

export default mounting('sheet', (root) => new Sheet(root));

class Sheet {
  constructor(root) {
    this.host = root.querySelector('.al-sheet');
  }

  update(message) {
    this.data = unpack(message.slice());
    this.saving ??= menu(this.host, this.given());
  }

  /** What is saved, as it stands in the page at this moment. */
  markup() {
    return drawnHtml(this.data.header.key);
  }

  /** What can be saved of it (see takeaway/menu.js). */
  given() {
    const made = () => import('../../attention-lab.shared/sheet/takeaway.js');
    const drawn = (how) => made().then((files) => files[how](files.picture(this.markup()), readTheme(this.host)));
    return {
      name: this.data.header.key,
      alt: () => this.data.header.alt,
      makers: () => this.data.header.makers,
      note: () => this.data.header.note,
      svg: () => drawn('svg'),
      png: () => drawn('png'),
      body: async () => (await made()).body(this.markup(), readTheme(this.host)),
      series: async () => (await made()).series(this.data),
    };
  }

  dispose() {}
}
