// Predictions that the browser's own fields take: a choice, a number, some words. Each has a `host`, a `value` (null as
// long as there is none), and compares a value with the answer in a sentence. `reveal` shows the answer alone, and `poll`
// lays over it what a room predicted (server/rooms/votes.py), again with a sentence.

import { element } from './element.js';

const NUMBER = /^[-−+]?(\d+([.,]\d*)?|[.,]\d+)$/;
const PERCENT = /\s*%$/;

export class Choice {
  constructor({ choices, truth }, changed) {
    this.truth = truth;
    this.value = null;
    this.labels = choices.map((words, place) => {
      const radio = element('input', { type: 'radio', name: 'choice', value: String(place) });
      radio.addEventListener('change', () => {
        this.value = { choice: place };
        changed();
      });
      return element('label', {}, radio, element('span', { textContent: words }));
    });
    this.host = element('div', { className: 'choices', role: 'radiogroup', 'aria-labelledby': 'question' }, ...this.labels);
  }

  reveal(choice = -1) {
    this.labels.forEach((label, place) => {
      const radio = label.querySelector('input');
      radio.checked = place === choice;
      radio.disabled = true;
      label.classList.toggle('right', place === this.truth);
      label.classList.toggle('wrong', place === choice && place !== this.truth);
    });
  }

  poll({ votes, counts }) {
    this.labels.forEach((label, place) => (label.dataset.votes = counts[place] ?? 0));
    return `The room: ${counts[this.truth] ?? 0} of ${votes} right.`;
  }

  compare({ choice }) {
    this.reveal(choice);
    const said = (place) => `“${this.labels[place].textContent}”`;
    return choice === this.truth ? `You predicted ${said(choice)}: right.` : `You predicted ${said(choice)}; it is ${said(this.truth)}.`;
  }
}

export class Amount {
  constructor({ truth, digits, share }, changed) {
    this.truth = truth;
    this.share = Boolean(share);
    this.digits = digits;
    this.value = null;
    this.input = element('input', { type: 'text', placeholder: share ? 'a share, 0 to 1' : 'a number', 'aria-labelledby': 'question', 'aria-describedby': 'number', inputMode: 'decimal', autocomplete: 'off' });
    this.hint = element('p', { className: 'hint', id: 'number', role: 'status' });
    this.input.addEventListener('input', () => {
      const typed = this.input.value.trim();
      const number = this.read(typed);
      this.value = number === null ? null : { number };
      const asked = this.share ? 'A share from 0 to 1, as 0.85 or 85 %.' : 'One number, as 7 or 0.85.';
      this.hint.textContent = typed && !this.value ? asked : '';
      changed();
    });
    this.host = element('div', { className: 'number' }, this.input, this.hint);
  }

  /** The number that was typed, null where it is none. As text: a field for numbers makes 78 of “7 of 8”, and says nothing. */
  read(typed) {
    const percent = this.share && PERCENT.test(typed);
    const plain = percent ? typed.replace(PERCENT, '') : typed;
    if (!NUMBER.test(plain)) return null;
    const number = Number(plain.replace(',', '.').replace('−', '-')) / (percent ? 100 : 1);
    return this.share && !(number >= 0 && number <= 1) ? null : number;
  }

  reveal(number = this.truth.toFixed(this.digits)) {
    this.input.value = String(number);
    this.input.disabled = true;
  }

  poll({ votes, mean, sd }) {
    const [is, by] = [mean, sd].map((value) => written(value, Math.max(this.digits, 1)));
    return `The room: ${is} on average of ${votes}, standard deviation ${by}. It is ${written(this.truth, this.digits)}.`;
  }

  compare({ number }) {
    this.reveal(number);
    const off = Math.abs(number - this.truth);
    const [said, is, by] = [number, this.truth, off].map((value) => written(value, this.digits));
    if (Number(off.toFixed(this.digits)) === 0) return `You predicted ${said}: right.`;
    return `You predicted ${said}; it is ${is}, ${by} ${number > this.truth ? 'less' : 'more'}.`;
  }
}

export class Words {
  constructor(_, changed) {
    this.value = null;
    this.area = element('textarea', { rows: 2, maxLength: 500, 'aria-labelledby': 'question' });
    this.area.addEventListener('input', () => {
      const words = this.area.value.trim();
      this.value = words ? { words } : null;
      changed();
    });
    this.host = element('div', {}, this.area);
  }

  reveal() {
    this.host.hidden = true;
  }

  poll({ words }) {
    return `The room wrote, the latest last: ${words.slice(-8).map((each) => `“${each}”`).join(', ')}`;
  }

  compare({ words }) {
    this.reveal();
    return `You wrote: “${words}”`;
  }
}

/** A number with a true minus. */
export const written = (value, digits) => value.toFixed(digits).replace('-', '−');
