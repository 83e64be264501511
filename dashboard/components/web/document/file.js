// A hand-out: documents in one file, a page each, with the notes. Nothing is asked of any server.

import { unpackedText } from '../kit/gzip.js';
import { hold } from '../plot/plotly_loader.js';
import { Reader } from './reader.js';
import { element } from '../prediction/element.js';
import { STYLES } from './styles.js';
import { explain } from './terms.js';

const KEYS = { ArrowRight: 1, PageDown: 1, ArrowLeft: -1, PageUp: -1 };
const TYPING = 'input, textarea, select, [role=slider], [role=application]';
const at = (id) => document.getElementById(id);
const reader = new Reader(at('document'), STYLES);
let documents = [];
let present = -1;

async function begin() {
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
  go(asked());
}

/** What the file holds under this id. */
const read = (id) => unpackedText(at(id).textContent.trim());
const named = ({ lecture, title }, place) => `${place + 1}. ${lecture ? lecture.step : title}`;
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
  const notes = [shown.notes, shown.lecture?.notes].filter(Boolean).join('\n\n');
  at('notes').hidden = !notes;
  at('notes-text').textContent = notes;
  explain(shown.terms);
  at('link').href = at('link').textContent = shown.link;
  at('view').hidden = !shown.link;
  at('weights').replaceChildren(...shown.makers.map(weights));
  at('made').textContent = `Written ${shown.made.slice(0, 16).replace('T', ' ')} UTC with ${shown.software}. Everything that is shown is in this file.`;
  at('hand-out').dataset.step = String(present + 1);
  history.replaceState(null, '', `#${present + 1}`);
  scrollTo({ top: 0, behavior: 'instant' });
  reader.bring(shown);
}

const weights = ({ run, step, weights: digest }) =>
  element('p', { textContent: `Model ${run}, step ${step}${digest ? `, weights sha256:${digest}` : ''}` });

begin();
