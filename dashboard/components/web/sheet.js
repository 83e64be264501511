// The button that saves a table or a strip: what it saves stands beside it in the page, as st.html drew it.

import { mounting } from '../attention-lab.shared/mount.js';
import { unpack } from '../attention-lab.shared/payload.js';
import { menu } from '../attention-lab.shared/takeaway.js';
import { readTheme } from '../attention-lab.shared/theme.js';

export default mounting((root) => new Sheet(root));

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
    return document.querySelector(`.st-key-${CSS.escape(this.data.header.key)} .stHtml`);
  }

  /** What can be saved of it (see menu in takeaway.js). */
  given() {
    const made = () => import('../attention-lab.shared/sheet_takeaway.js');
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
