// Hand-outs: the present view, or every step of a lecture, as one file.

import { handOut } from '../document/hand_out.js';
import { isReady, isWhole, write } from '../document/write.js';
import { root } from '../kit/root.js';

const VIEW = 60_000; // ms that the present view may take for what it measures; then it is written as it stands
const STEP = 600_000; // the same of each step of a lecture: a busy machine takes longer, and the file says the same
const STANDS = 60_000; // ms after that in which it has to be drawn
const LOOKS = 100; // ms between two looks at it
const STILL = 400; // ms for which it has to stand still: what a page measures comes in parts, and its terms are found last
const [WIDTH, HEIGHT] = [1200, 900]; // of the page that is written, in pixels

/** The present view with one's own `notes`, a text, and the `presenters`, if they are wanted. Returns {text, name}. */
export async function viewFile(_, { notes, presenters }, say) {
  say('Writing …');
  const document_ = { ...(await still((late) => (isWhole() || (late && isReady())) && write({ whole: true, notes: presenters }), Boolean, VIEW)), notes };
  return { text: await handOut(await template(), document_.title, [document_]), name: stem(document_.title) };
}

/** The lecture `given`: {name, title, steps}, the links of its steps. A page of its own, out of sight, walks through it. */
export async function lectureFile(given, { notes, presenters }, say) {
  const frame = document.createElement('iframe');
  Object.assign(frame, { src: `${root}${given.steps[0]}`, width: WIDTH, height: HEIGHT, tabIndex: -1, title: 'The pages of the hand-out' });
  frame.setAttribute('aria-hidden', 'true');
  frame.style.cssText = `position:fixed;left:-${2 * WIDTH}px;top:0;border:0`;
  document.body.append(frame);
  try {
    const documents = [];
    const page = () => frame.contentWindow?.__writing;
    for (let step = 1; step <= given.steps.length; step++) {
      say(`Writing step ${step} of ${given.steps.length} …`);
      const stands = (late) => page()?.isWhole() || (late && page()?.isReady());
      const now = (late) => stands(late) && page().write({ whole: true, notes: presenters });
      documents.push(await still(now, (written) => written?.lecture?.at === step, STEP));
      if (step < given.steps.length) button(frame.contentDocument, 'lecture-next').click();
    }
    documents[0].notes = notes;
    say('Packing …');
    return { text: await handOut(await template(), given.title, documents), name: stem(given.name) };
  } finally {
    frame.remove();
  }
}

/** The button of a key in a page (web/presses): it stands in a shadow root. */
const button = (page, key) =>
  [...page.querySelectorAll(`.st-key-${key} *`)].find(({ shadowRoot }) => shadowRoot).shadowRoot.querySelector('button');

async function template() {
  const answer = await fetch(`${root}reader/hand-out.html`);
  if (!answer.ok) throw new Error('the server did not give the empty hand-out');
  return answer.text();
}

const stem = (title) => title.replace(/[^A-Za-z0-9._-]+/g, '_').replace(/^_+|_+$/g, '').slice(0, 80) || 'hand-out';
const pause = () => new Promise((resolve) => setTimeout(resolve, LOOKS));

/**
 * What `look` gives once it is `right` and has not changed for a while; it is told when it is late. Then what goes on
 * changing, as a training does, is taken as it stands. Throws where nothing that is right stands even then.
 */
async function still(look, right, patience) {
  let [text, since] = ['', 0];
  const end = performance.now() + patience;
  while (performance.now() < end + STANDS) {
    const late = performance.now() > end;
    const now = look(late);
    if (now && right(now)) {
      const said = JSON.stringify({ ...now, made: '' });
      if (said !== text) [text, since] = [said, performance.now()];
      if (late || performance.now() - since > STILL) return now;
    }
    await pause();
  }
  throw new Error('the page did not come to rest');
}
