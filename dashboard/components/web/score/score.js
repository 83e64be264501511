// How many riddles were solved in this browser: of each the first answer counts. Python is told nothing.

import { mounting } from '../../attention-lab.shared/kit/mount.js';
import { unpack } from '../../attention-lab.shared/kit/payload.js';

const KEPT = 'attention-lab-riddles';
const MOST = 300; // riddles; the oldest go first

export default mounting('score', (root) => new Score(root.querySelector('.al-score')));

class Score {
  constructor(host) {
    this.host = host;
    this.words = host.querySelector('.words');
    this.forget = host.querySelector('button');
    this.forget.addEventListener('click', () => {
      write({});
      this.say();
    });
  }

  update(message) {
    const { round, right } = unpack(message.slice()).header;
    const known = all();
    if (right !== null && !(round in known)) write({ ...known, [round]: right });
    this.say();
  }

  say() {
    const answers = Object.values(all());
    const solved = answers.filter(Boolean).length;
    this.words.textContent = answers.length ? `Named ${solved} of ${answers.length} in this browser.` : '';
    this.forget.hidden = !answers.length;
  }

  dispose() {}
}

function all() {
  try {
    const found = JSON.parse(localStorage.getItem(KEPT));
    return found && typeof found === 'object' ? found : {};
  } catch {
    return {};
  }
}

function write(answers) {
  try {
    localStorage.setItem(KEPT, JSON.stringify(Object.fromEntries(Object.entries(answers).slice(-MOST))));
  } catch {
    // private, or full
  }
}
