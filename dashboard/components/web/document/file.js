// A hand-out: documents in one file, a page each, with the notes. Nothing is asked of any server.

import { unpackedText } from '../kit/gzip.js';
import { hold } from '../plot/plotly_loader.js';
import { Paper, holdLoading } from './paper.js';
import { Reader } from './reader.js';
import { element } from '../prediction/element.js';
import { predictions } from '../prediction/memory.js';
import { STYLES } from './styles.js';
import { explain } from './terms.js';

const KEYS = { ArrowRight: 1, PageDown: 1, ArrowLeft: -1, PageUp: -1 };
const TYPING = 'input, textarea, select, [role=slider], [role=application]';
const at = (id) => document.getElementById(id);
const reader = new Reader(at('document'), STYLES, { within: '#document' });
let paper = null; // of a lecture; a single page is printed as it stands
let written = null; // once all is on paper
let documents = [];
let present = -1;

async function begin() {
  const loaded = holdLoading();
  hold(() => read('plotly'));
  documents = JSON.parse(await read('documents'));
  at('steps').replaceChildren(...documents.map((each, place) => element('option', { value: String(place), textContent: named(each, place) })));
  at('way').hidden = documents.length === 1;
  at('steps').addEventListener('change', () => go(Number(at('steps').value)));
  at('back').addEventListener('click', () => go(present - 1));
  at('next').addEventListener('click', () => go(present + 1));
  addEventListener('hashchange', () => go(asked()));
  document.addEventListener('keydown', (event) => {
    const by = KEYS[event.key];
    if (!by || event.ctrlKey || event.metaKey || event.altKey || event.composedPath()[0].matches?.(TYPING)) return;
    event.preventDefault();
    go(present + by);
  });
  document.addEventListener('attention-lab-shown', tell); // a question was answered, or is asked again
  document.addEventListener('keydown', (event) => event.key.toLowerCase() === 'p' && (event.ctrlKey || event.metaKey) && print(event));
  addEventListener('beforeprint', () => (at('terms').open = true));
  at('print').addEventListener('click', print);
  go(asked());
  if (documents.length > 1 || documents[0].question) paper = new Paper(at('paper'), STYLES);
  else at('paper').remove();
  written = Promise.resolve(paper?.draw(documents)).finally(loaded);
}

/** Print all, once it is drawn. */
async function print(event) {
  event.preventDefault();
  at('print').disabled = true;
  await written;
  at('print').disabled = false;
  window.print();
}

/** What the file holds under this id. */
const read = (id) => unpackedText(at(id).textContent.trim());
/** A step in the menu; one that asks by its question, until it is answered. */
const named = (document_, place) => `${place + 1}. ${isAsking(document_) ? document_.asks : document_.lecture?.step || document_.title}`;
const isAsking = ({ question }) => Boolean(question) && !predictions.of(question);
const asked = () => Number(location.hash.slice(1)) - 1 || 0;

function go(place) {
  const wanted = Math.min(Math.max(place, 0), documents.length - 1);
  if (wanted === present) return;
  present = wanted;
  const shown = documents[present];
  reader.show(shown);
  at('steps').value = String(present);
  at('back').disabled = present === 0;
  at('next').disabled = present === documents.length - 1;
  tell();
  at('link').href = at('link').textContent = shown.link;
  at('view').hidden = !shown.link;
  at('weights').replaceChildren(...shown.makers.map(weights));
  at('made').textContent = `Written ${shown.made.slice(0, 16).replace('T', ' ')} UTC with ${shown.software}. Everything that is shown is in this file.`;
  at('hand-out').dataset.step = String(present + 1);
  history.replaceState(null, '', `#${present + 1}`);
  scrollTo({ top: 0, behavior: 'instant' });
  reader.bring(shown);
}

/** What stands around a step and may tell its answer, once that is shown. */
function tell() {
  const shown = documents[present];
  documents.forEach((each, place) => (at('steps').options[place].textContent = named(each, place)));
  const asks = isAsking(shown);
  const notes = [shown.notes, asks ? '' : shown.lecture?.notes].filter(Boolean).join('\n\n');
  at('notes').hidden = !notes;
  at('notes-text').textContent = notes;
  explain(asks ? [] : shown.terms);
}

const weights = ({ run, step, weights: digest }) =>
  element('p', { textContent: `Model ${run}, step ${step}${digest ? `, weights sha256:${digest}` : ''}` });

begin();
