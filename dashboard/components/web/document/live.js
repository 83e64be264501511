// A follower's page: shows what the lecturer's page shows, as soon as it does (server/rooms/), and sends back what is
// predicted here. The address names the room: /room/CODE.

import { element } from '../prediction/element.js';
import { here, predictions, sent } from '../prediction/memory.js';
import { Reader } from './reader.js';
import { STYLES } from './styles.js';
import { explain } from './terms.js';

const AGAIN = 3000; // ms after which a room that was full, or away, is asked again, and a page that did not come
const code = location.pathname.split('/').pop();
const at = (id) => document.getElementById(id);
const reader = new Reader(at('document'), STYLES);
let present = ''; // the document that stands here, by its hash
let wanted = '';

/** Hear of every step. A browser asks again by itself where the connection is lost, but not where it is refused. */
function listen() {
  const events = new EventSource(`room/${code}/events`);
  events.addEventListener('step', ({ data }) => follow(JSON.parse(data)));
  events.addEventListener('over', () => {
    events.close();
    say('This room is closed. What you see is where it ended.');
    at('live').dataset.state = 'over';
  });
  events.addEventListener('open', () => say(''));
  events.addEventListener('error', async () => {
    say('The connection is lost. Trying again …');
    if (events.readyState !== EventSource.CLOSED) return;
    const answer = await fetch(`room/${code}/events`).catch(() => null); // which says why, as the stream cannot
    if (answer && !answer.ok) say((await answer.json()).error);
    else answer?.body.cancel();
    if (answer?.status !== 404) setTimeout(listen, AGAIN);
  });
}

/** Fetch the newest document and show it; one that is overtaken on its way is not shown. */
function follow({ document: hash }) {
  wanted = hash;
  fetchWanted();
}

async function fetchWanted() {
  const hash = wanted;
  if (!hash) return say('The lecturer has opened this room. The first page comes as soon as it is shown.');
  if (hash === present) return;
  try {
    const answer = await fetch(`room/${code}/document/${hash}`);
    if (wanted !== hash) return;
    if (!answer.ok) throw new Error((await answer.json()).error);
    show(await answer.json(), hash);
  } catch (error) {
    if (wanted !== hash) return;
    say(`This page could not be shown: ${error.message}`);
    setTimeout(() => wanted === hash && fetchWanted(), AGAIN);
  }
}

function show(written, hash) {
  const view = JSON.stringify([written.link, written.lecture?.at]); // the link may be new before the step's words are
  const [other, before] = [view !== at('live').dataset.view, scrollY];
  reader.show(written);
  explain(written.terms);
  present = hash;
  document.title = `${written.lecture?.step || written.title} – Attention Lab`;
  at('explore').href = own(written.link);
  at('explore').hidden = false;
  at('live').dataset.document = hash;
  at('live').dataset.view = view;
  say('');
  // Who has not predicted sees the answer with all others.
  if (written.question && !written.covered && !predictions.of(written.question)) document.dispatchEvent(new Event('attention-lab-show'));
  scrollTo({ top: other ? 0 : before, behavior: 'instant' });
  if (!other) return;
  reader.bring(written);
}

/** The same view as a session of one's own: the server that this page came from, and the way back. */
function own(link) {
  const { pathname, search } = new URL(link);
  const query = new URLSearchParams(search);
  query.set('exploring', '1');
  query.set('room', code);
  return `${pathname}?${query}`;
}

document.addEventListener('attention-lab-predicted', async ({ detail: { asked, value } }) => {
  const vote = { question: asked.id, answer: told(asked, value) };
  let said;
  try {
    let answer = await post(vote);
    if (answer.status === 403) answer = await post(vote); // the refusal brought the cookie, if this browser takes any
    if (answer.ok) sent.keep(here(asked.id), true);
    else said = (await answer.json()).error;
  } catch {
    said = 'Your prediction did not reach the lecturer. Send it again.';
  }
  if (asked.truth === null) document.dispatchEvent(new CustomEvent('attention-lab-sent', { detail: { question: asked.id, said } }));
  else if (said) say(said); // the answer stands there already
});

const post = (vote) => fetch(`room/${code}/votes`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(vote) });

/** A prediction as it is counted: a place, a number, heights, a painted matrix of 0 and 1, or words. */
function told({ kind, rows, columns }, value) {
  if (kind !== 'cells') return Object.values(value)[0];
  const painted = new Set(value.cells);
  return rows.map((_, row) => columns.map((__, column) => (painted.has(row * columns.length + column) ? 1 : 0)));
}

function say(sentence) {
  at('said').textContent = sentence;
  at('said').hidden = !sentence;
}

at('code').replaceChildren(element('b', { textContent: code }));
listen();
