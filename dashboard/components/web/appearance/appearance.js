// Asks for the page anew where Python drew it for the other theme: Streamlit tells Python of a change with reruns only.
// It stands on every page, so it also sees to what every page needs of the browser: what scrolls can be scrolled by
// key, a step back leads to the view before, and on a phone the menu goes once a page was chosen.

import { oneEntryAView } from '../../attention-lab.shared/kit/history.js';
import { mounting } from '../../attention-lab.shared/kit/mount.js';
import { unpack } from '../../attention-lab.shared/kit/payload.js';
import { scrolledByKey } from '../../attention-lab.shared/kit/scrollers.js';
import { page, uncoverWhenChosen } from '../../attention-lab.shared/kit/streamlit_private.js';
import { readTheme } from '../../attention-lab.shared/kit/theme.js';

export default mounting('appearance', (root) => new Appearance(root));

class Appearance {
  constructor(root) {
    this.host = root.querySelector('.al-appearance');
    this.asked = null; // what the page was asked for and is not drawn in yet: dark, or not
    this.ends = [scrolledByKey(page()), uncoverWhenChosen()];
    oneEntryAView();
  }

  update(message, fire) {
    const { dark } = readTheme(this.host);
    if (dark === unpack(message.slice()).header.dark) this.asked = null;
    else if (dark !== this.asked) fire('theme', (this.asked = dark));
  }

  dispose() {
    for (const end of this.ends) end();
  }
}
