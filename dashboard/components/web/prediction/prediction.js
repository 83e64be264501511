// A question above a covered page: what is predicted here is compared with the answer, and the page is shown. What one
// predicted is kept in this browser alone, by the question's id; Python is told nothing.

import { mounting } from '../../attention-lab.shared/kit/mount.js';
import { same, unpack } from '../../attention-lab.shared/kit/payload.js';
import { element } from '../../attention-lab.shared/prediction/element.js';
import { KINDS } from '../../attention-lab.shared/prediction/kinds.js';
import { here, predictions, sent, starts } from '../../attention-lab.shared/prediction/memory.js';

const PREDICTED = 'attention-lab-predicted'; // told to the page of a room (document/live.js)
const SENT = 'attention-lab-sent'; // its answer: that it is counted, or a sentence why not
const SHOWN = 'attention-lab-shown'; // what is told to a lecture's strip (podium.js): the verdict, and whether to go on
const DRAWN = ['bars', 'cells']; // the answer is laid over these, here
const SEEN = { seen: true }; // kept in place of a prediction by whoever looks without one
const PAINTED = 1000; // milliseconds after which a window that paints nothing, because it is hidden, is taken for painted

export default mounting('prediction', (root) => new Prediction(root.querySelector('.al-prediction')));

class Prediction {
  constructor(host) {
    this.host = host;
    this.message = null;
    host.__prediction = this; // for the keys of a lecture (podium.js)
    this.over = new AbortController();
    // A lecturer's key goes on: the answer is shown before the next step.
    document.addEventListener('attention-lab-show', () => this.shown || this.commit(SEEN), { signal: this.over.signal });
    document.addEventListener('attention-lab-votes', ({ detail }) => this.poll(detail), { signal: this.over.signal });
    document.addEventListener(SENT, ({ detail: { question, said } }) => question === this.asked?.id && this.withheld && this.wait(said), { signal: this.over.signal });
  }

  update(message) {
    if (same(message, this.message)) return this.lift();
    this.message = message.slice();
    const { header, body } = unpack(this.message);
    this.host.dataset.question = header.id;
    this.asked = { ...header, weights: new Float32Array(body.buffer, body.byteOffset, body.byteLength >> 2) };
    this.ask();
    if (header.start && starts.of(header.id) !== header.start) {
      predictions.forget(header.id); // the lecture was started anew, and asks anew
      starts.keep(header.id, header.start);
    }
    const before = predictions.of(header.id);
    if (this.withheld) sent.of(here(header.id)) && this.wait();
    else if (before) this.show(before);
    this.tell(false);
  }

  /** Tell a lecture's strip what came of it; `far` sends it on to the page, away from this question. */
  tell(far) {
    document.dispatchEvent(new CustomEvent(SHOWN, { detail: { verdict: this.verdict.textContent, far } }));
  }

  /** The question with what one answers it by, nothing predicted yet. */
  ask() {
    this.lift(false);
    this.changed();
    const title = element('h2', { id: 'question', textContent: this.asked.ask });
    this.field = new KINDS[this.asked.kind](this.asked, () => (this.see.disabled = !this.field.value));
    const words = this.withheld ? 'Send the prediction' : 'Show the answer';
    this.see = element('button', { type: 'button', className: 'primary', textContent: words, disabled: true });
    this.see.addEventListener('click', () => this.commit(this.field.value));
    this.field.host.addEventListener('keydown', (event) => event.key === 'Enter' && event.target.inputMode === 'decimal' && this.see.click());
    const pass = element('button', { type: 'button', textContent: 'Show without predicting', hidden: this.withheld });
    pass.addEventListener('click', () => this.commit(SEEN));
    this.verdict = element('p', { className: 'verdict', role: 'status' });
    this.tally = element('p', { className: 'tally', role: 'status' });
    this.ways = element('div', { className: 'ways' }, this.see, pass);
    this.host.setAttribute('aria-labelledby', 'question');
    this.host.replaceChildren(title, this.field.host, this.ways, this.verdict, this.tally);
    this.poll(this.votes);
  }

  /** What a room has predicted so far: how many, and once the answer is shown, what. */
  poll(votes) {
    if (votes?.question !== this.asked?.id) return;
    this.votes = votes;
    if (!votes.votes) this.tally.textContent = votes.followers ? `${votes.followers} ${votes.followers === 1 ? 'follows' : 'follow'}; nobody has predicted yet.` : '';
    else if (!this.shown) this.tally.textContent = `${votes.votes} of ${votes.followers} have predicted.`;
    else {
      if (!this.field.host.isConnected) {
        this.host.querySelector('h2').after(this.field.host);
        this.field.reveal();
      }
      this.tally.textContent = this.field.poll(votes);
    }
  }

  /** Does a room wait for its lecturer with the answer? Then it is not even here. */
  get withheld() {
    return this.asked.truth === null;
  }

  commit(value) {
    if (this.withheld && value.seen) return;
    predictions.keep(this.asked.id, value);
    if (!value.seen) document.dispatchEvent(new CustomEvent(PREDICTED, { detail: { asked: this.asked, value } }));
    if (this.withheld) return this.wait('Sending …');
    this.show(value);
    this.tell(!this.votes?.votes && (!DRAWN.includes(this.asked.kind) || Boolean(value.seen)));
  }

  /** Say what became of a prediction whose answer comes later; until then it may be changed. */
  wait(said = 'Your prediction is sent. The answer comes when the lecture shows it. Until then you can change it.') {
    this.verdict.textContent = said;
  }

  /** Lift the cover, and lay the answer over what was predicted. */
  show(value) {
    if (value.seen) this.field.host.remove();
    this.host.classList.toggle('seen', Boolean(value.seen));
    this.verdict.textContent = value.seen ? '' : this.field.compare(value);
    const again = element('button', { type: 'button', textContent: value.seen ? 'Predict' : 'Predict again' });
    again.addEventListener('click', () => {
      predictions.forget(this.asked.id);
      this.ask();
      this.tell(false);
      this.host.querySelector('input, textarea, [tabindex]')?.focus();
    });
    this.ways.replaceChildren(again);
    this.host.getRootNode().activeElement?.blur(); // the arrow keys are the lecture's again
    this.changed();
    this.shown = true;
    this.lift();
    this.poll(this.votes);
  }

  /** Note since when one can see what stands here now, the question or its answer; it is painted first. */
  changed() {
    this.since = Infinity;
    const change = (this.change = {});
    const painted = () => {
      if (this.change === change) this.since = Math.min(this.since, performance.now());
    };
    requestAnimationFrame(() => setTimeout(painted));
    setTimeout(painted, PAINTED);
  }

  /** The style that covers the page asks for this mark (dashboard/frame/guided/prediction.py). */
  lift(shown = this.shown) {
    this.shown = shown;
    this.host.classList.toggle('answered', Boolean(shown));
    if (shown) document.documentElement.dataset.predicted = this.asked.id;
    else delete document.documentElement.dataset.predicted;
  }

  dispose() {
    this.over.abort();
    if (document.documentElement.dataset.predicted !== this.asked?.id) return; // the next question may be answered by now
    this.lift(false);
    document.dispatchEvent(new CustomEvent(SHOWN, { detail: { verdict: '', far: false } }));
  }
}
