// Which exercises were solved in this browser, each with the link of the view that solved it. Python is told nothing.

import { Memory } from '../../attention-lab.shared/kit/memory.js';
import { mounting } from '../../attention-lab.shared/kit/mount.js';
import { unpack } from '../../attention-lab.shared/kit/payload.js';
import { root } from '../../attention-lab.shared/kit/root.js';

const SAID = 2000; // ms for which the button says that it has copied
const solutions = new Memory('attention-lab-exercises');

export default mounting('solved', (root) => new Solved(root.querySelector('.al-solved')));

class Solved {
  constructor(host) {
    this.host = host;
    this.words = host.querySelector('.words');
    this.proof = host.querySelector('.proof');
    this.copy = host.querySelector('.copy');
    this.copy.addEventListener('click', () => this.hand());
  }

  update(message) {
    const { exercise, proof } = unpack(message.slice()).header;
    if (proof) solutions.keep(exercise, proof);
    const kept = proof ?? solutions.of(exercise);
    this.host.dataset.solved = proof ? 'now' : kept ? 'before' : 'no';
    this.words.textContent = proof ? 'Solved. The link to this view is the proof.' : kept ? 'Solved before in this browser.' : '';
    if (kept) this.proof.href = new URL(kept, root).href;
    this.proof.hidden = !kept || Boolean(proof);
    this.copy.hidden = !kept;
  }

  async hand() {
    const before = this.copy.textContent;
    try {
      await navigator.clipboard.writeText(this.proof.href);
      this.copy.textContent = 'Copied';
    } catch {
      this.copy.textContent = 'Copy it from the address bar';
    }
    setTimeout(() => (this.copy.textContent = before), SAID);
  }

  dispose() {}
}
