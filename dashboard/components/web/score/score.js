// How many riddles were solved in this browser: of each the first answer counts. Python is told nothing.

import { Memory } from '../../attention-lab.shared/kit/memory.js';
import { mounting } from '../../attention-lab.shared/kit/mount.js';
import { unpack } from '../../attention-lab.shared/kit/payload.js';

const riddles = new Memory('attention-lab-riddles');

export default mounting('score', (root) => new Score(root.querySelector('.al-score')));

class Score {
  constructor(host) {
    this.host = host;
    this.words = host.querySelector('.words');
    this.forget = host.querySelector('button');
    this.forget.addEventListener('click', () => {
      riddles.clear();
      this.say();
    });
  }

  update(message) {
    const { round, right } = unpack(message.slice()).header;
    if (right !== null && riddles.of(round) === undefined) riddles.keep(round, right);
    this.say();
  }

  say() {
    const answers = Object.values(riddles.all());
    const solved = answers.filter(Boolean).length;
    this.words.textContent = answers.length ? `Named ${solved} of ${answers.length} in this browser.` : '';
    this.forget.hidden = !answers.length;
  }

  dispose() {}
}
