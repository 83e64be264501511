// A question and its answer with arcs between them, on canvases, and a field over the question that takes another one.

import { ARROWS, Canvases } from '../../attention-lab.shared/canvas/canvases.js';
import { announce, listen, take } from '../../attention-lab.shared/kit/link.js';
import { mounting } from '../../attention-lab.shared/kit/mount.js';
import { unpack } from '../../attention-lab.shared/kit/payload.js';
import { layOut, pick } from '../../attention-lab.shared/arcs/layout.js';
import { asking, mark, paint, strongest } from '../../attention-lab.shared/arcs/paint.js';

const PAUSE = 250; // ms after the last letter typed, before it is asked
const WRITTEN = 110; // ms from one answer to the next, when new ones are written
const FLIGHT = 260; // ms that a line takes to where a head looks

export default mounting('arcs', (root) => new Arcs(root));

class Arcs extends Canvases {
  constructor(root) {
    super(root, { layOut, paint, mark }, '.arcs', '.arcs');
    this.field = root.querySelector('.typed');
    this.state = { written: Infinity, pale: false, flown: 1, caret: null };
    this.draft = null; // what is being typed, as long as it is not answered
    this.host.addEventListener('pointermove', (event) => this.hover(this.under(event)));
    this.host.addEventListener('pointerleave', () => this.hover(null));
    this.host.addEventListener('click', (event) => event.target !== this.field && this.hover(this.under(event))); // a tap
    this.host.addEventListener('keydown', (event) => this.key(event));
    this.field.addEventListener('input', () => this.typed());
    // What is typed first takes the place of all: a click or a tap would set a caret in it.
    this.field.addEventListener('focus', () => this.field.select());
    this.field.addEventListener('click', () => this.draft === null && this.field.select());
    for (const each of ['focus', 'blur', 'keyup', 'click']) this.field.addEventListener(each, () => this.caret());
    this.field.addEventListener('blur', () => this.left());
    this.silence = listen(this, (cell, group) => group === this.data?.link && this.follow(cell));
    this.ignore = take(this, ({ data, number }, group) => group === this.data?.link && this.shown(data.panels[number]));
    this.host.__arcs = this; // for tests: data, layout, state, cell
  }

  update(message, fire) {
    if (!this.news(message, fire)) return;
    const before = this.data;
    const data = decode(this.message);
    const asked = data.question.join(' ');
    if (this.draft !== null && this.draft !== asked) {
      this.waiting = data; // an answer to what was typed before: more was typed since
      return;
    }
    this.draft = null;
    this.accept(data, !before || answer(before) !== answer(data));
  }

  /** Draw other data; a new answer is written one token after another. */
  accept(data, anew) {
    this.data = data;
    this.waiting = null;
    this.state.pale = false;
    this.cell = null;
    this.host.setAttribute('aria-label', data.alt);
    this.line.dataset.hint = data.hint;
    this.field.hidden = !data.typing;
    this.field.setAttribute('aria-label', data.typing ? `The question. ${data.typing.hint}.` : '');
    if (!this.isTyping()) this.field.value = data.question.join('');
    this.write(anew);
    this.arrange();
    this.offer(() => import('../../attention-lab.shared/arcs/takeaway.js'), () => null);
  }

  write(anew) {
    clearInterval(this.writing);
    this.state.written = Infinity;
    if (!anew || still()) return;
    this.state.written = 0;
    this.writing = setInterval(() => {
      this.state.written += 1;
      if (this.state.written >= this.data.said.length) {
        clearInterval(this.writing);
        this.state.written = Infinity;
      }
      this.repaint();
    }, WRITTEN);
  }

  arrange() {
    super.arrange();
    if (!this.layout) return;
    const { x, y, width, size } = this.layout.asked;
    Object.assign(this.field.style, { left: `${x}px`, top: `${y}px`, width: `${width}px`, height: `${size}px` });
  }

  paint(context) {
    paint(context, this.data, this.layout, this.theme, this.ratio, this.state);
  }

  mark(context) {
    mark(context, this.data, this.layout, this.theme, this.ratio, this.cell, this.state);
  }

  repaint() {
    if (!this.layout) return;
    this.paint(this.base.getContext('2d'));
    this.refresh();
  }

  pick(x, y) {
    return pick(this.layout, x, y);
  }

  // --- pointing

  hover(box) {
    const looks = this.data?.looks;
    if (!looks || this.state.pale) return;
    const row = box?.kind === 'answer' ? looks.rows[box.index - this.layout.first] : -1;
    this.point(row >= 0 ? { row, column: strongest(looks, row).key, rows: looks.shape[0], columns: looks.shape[1] } : null, true);
  }

  /** Another component of this link has its pointer on `cell`. */
  follow(cell) {
    const shape = this.data?.looks?.shape;
    if (!shape || this.state.pale) return;
    this.point(cell && cell.rows === shape[0] && cell.columns === shape[1] ? cell : null, false);
  }

  point(cell, own) {
    const moved = cell?.row !== this.cell?.row;
    this.cell = cell;
    if (moved && own && this.data.link) announce(this.data.link, cell, this);
    if (moved && cell && !still()) this.fly();
    this.redraw();
  }

  /** Let the lines of what is pointed at fly to where the head looks. */
  fly() {
    const start = performance.now();
    const cell = this.cell;
    const step = (now) => {
      if (this.cell !== cell || !this.host.isConnected) return;
      const t = Math.min(1, Math.max(0, now - start) / FLIGHT);
      this.state.flown = 1 - (1 - t) ** 3;
      this.refresh();
      if (t < 1) requestAnimationFrame(step);
      else this.state.flown = 1;
    };
    this.state.flown = 0;
    requestAnimationFrame(step);
  }

  /** The grid has another head chosen, whose pattern is here before Python sends it. */
  shown(panel) {
    const looks = this.data.looks;
    if (!looks || !panel || panel.rows !== looks.shape[0] || panel.columns !== looks.shape[1] || panel.factor > 1) return;
    const values = panel.values instanceof Float32Array ? panel.values : Float32Array.from(panel.values, (level) => level / 255);
    this.data = { ...this.data, looks: { ...looks, values, head: `head ${panel.name}` } };
    this.repaint();
  }

  key(event) {
    if (event.target === this.field || event.ctrlKey || event.metaKey || event.altKey || !this.layout) return;
    const across = ARROWS[event.key]?.[1];
    const answers = this.layout.boxes.filter(({ kind }) => kind === 'answer');
    if (event.key === 'Escape') this.hover(null);
    else if (across && answers.length) {
      const at = this.cell ? this.data.looks?.rows.indexOf(this.cell.row) : across > 0 ? -1 : answers.length;
      this.hover(answers[Math.max(0, Math.min(answers.length - 1, at + across))]);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  // --- typing

  isTyping() {
    return this.field.getRootNode().activeElement === this.field;
  }

  typed() {
    const { symbols, alphabet, longest, hint } = this.data.typing;
    const letters = [...this.field.value.toLowerCase()].filter((letter) => !/[\s,;]/.test(letter));
    const kept = letters.filter((letter) => symbols.includes(letter)).slice(0, longest);
    const strange = letters.find((letter) => !symbols.includes(letter));
    this.refused = strange ? `“${strange}” is not a symbol of this task: use ${alphabet}.` : '';
    if (!strange && (kept.length < letters.length || !kept.length)) this.refused = `${hint}: these are ${letters.length || 'none'}.`;
    if (this.field.value !== kept.join('')) this.field.value = kept.join('');
    clearTimeout(this.asking);
    this.draft = kept.join(' ');
    this.data = { ...this.data, question: kept };
    this.state.pale = true;
    clearInterval(this.writing);
    this.state.written = Infinity;
    this.cell = null;
    this.arrange();
    this.caret();
    if (kept.length) this.asking = setTimeout(() => this.ask(), PAUSE);
  }

  /** Ask what was typed; where that is what Python has answered last, it stands already. */
  ask() {
    const known = this.waiting ?? decode(this.message);
    if (known.question.join(' ') === this.draft) {
      this.draft = null;
      this.accept(known, true);
    } else this.fire('question', this.draft);
  }

  /** The field was left: where nothing was typed, the question stands as it was. */
  left() {
    this.refused = '';
    if (this.draft !== '') return this.redraw();
    this.draft = null;
    this.accept(this.waiting ?? decode(this.message), false);
  }

  caret() {
    const at = this.isTyping() ? Math.min(this.field.selectionStart, this.data.typing.longest - 1) : null;
    this.state.caret = at === null || at >= this.layout?.boxes.length ? null : at;
    this.redraw();
  }

  // --- in words

  tell() {
    const { cell, data, refused } = this;
    if (refused) return this.say(refused);
    const hint = this.isTyping() && data.typing ? `${data.typing.hint}: the answer follows as you type.` : '';
    if (!cell || !data.looks) return this.say(hint);
    const answer = data.looks.rows.indexOf(cell.row);
    const best = strongest(data.looks, cell.row);
    const read = this.name(best.token);
    const share = `${data.looks.head} puts ${best.share.toFixed(2)} of its attention on ${read}`;
    if (answer < 0) {
      const from = asking(data, this.layout, cell.row);
      return this.say(from ? `For the output at ${cell.row + 1}, ${share}.` : '');
    }
    const { text, verdict } = data.said[answer];
    const judged = { right: ', right', wrong: ', wrong', open: ', which nobody can know' }[verdict] ?? '';
    this.say(`Answer ${answer + 1} is ${text}${judged}. For it, ${share}.`);
  }

  /** What a token is called: "'9', the question's number 6". */
  name(token) {
    const { question, separator, said } = this.data;
    if (token < question.length) return `'${question[token]}', number ${token + 1} of the question`;
    if (separator && token === question.length) return separator;
    const answer = token - this.layout.first;
    return `'${said[answer].text}', number ${answer + 1} of the answer`;
  }

  dispose() {
    super.dispose();
    clearInterval(this.writing);
    clearTimeout(this.asking);
    this.silence();
    this.ignore();
  }
}

const answer = ({ question, said }) => JSON.stringify([question, said]);
const still = () => window.matchMedia('(prefers-reduced-motion: reduce)').matches;

/** The header, with the pattern as numbers. */
export function decode(message) {
  const { header, body } = unpack(message);
  const { looks } = header;
  if (!looks) return header;
  const values = new Float32Array(body.buffer, body.byteOffset + looks.pattern, looks.shape[0] * looks.shape[1]);
  return { ...header, looks: { ...looks, values } };
}
