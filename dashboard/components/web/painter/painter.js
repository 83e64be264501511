// A mask to paint on: drag to forbid or to allow, undo and redo; Python is told once a stroke, when it has ended.

import { ARROWS, Canvases } from '../../attention-lab.shared/canvas/canvases.js';
import { toBase64 } from '../../attention-lab.shared/kit/base64.js';
import { announce, listen } from '../../attention-lab.shared/kit/link.js';
import { mounting } from '../../attention-lab.shared/kit/mount.js';
import { unpack } from '../../attention-lab.shared/kit/payload.js';
import { historyOf } from '../../attention-lab.shared/painter/history.js';
import { BRUSHES, blindRows, blindness, counts, fill, pack, sentence, size, touched, unpackCells } from '../../attention-lab.shared/painter/mask.js';
import { layOut, mark, paint, pick, repaint } from '../../attention-lab.shared/painter/paint.js';

const TRUST = 3000; // ms for which a stroke that was reported stands against masks that do not know it yet

export default mounting('painter', (root) => new Painter(root));

class Painter extends Canvases {
  constructor(root) {
    super(root, { layOut, paint, mark }, '.painter');
    this.warned = root.querySelector('.blind');
    this.tools = root.querySelector('.tools');
    this.cells = null;
    this.stroke = null; // while one is drawn: {value, from, to, before}
    this.at = 0; // when the last stroke was made, by the clock that Python is told
    this.sentAt = -Infinity;
    this.brush = 'cell';
    this.mirrors = { main: false, anti: false };
    this.silence = listen(this, (cell, group) => group === this.data?.link && !this.stroke && this.follow(cell));
    this.host.addEventListener('pointerdown', (event) => this.begin(event));
    this.host.addEventListener('pointermove', (event) => this.move(event));
    this.host.addEventListener('pointerup', () => this.finish());
    this.host.addEventListener('pointercancel', () => this.abandon());
    this.host.addEventListener('pointerleave', () => this.stroke || this.point(null));
    root.querySelector('.all').addEventListener('keydown', (event) => this.key(event));
    this.tools.addEventListener('click', (event) => this.tool(event.target.closest('button')));
    this.host.__painter = this; // for tests: data, layout, cells, frames
  }

  update(message, fire) {
    if (!this.news(message, fire)) return;
    const before = this.data;
    const { header, body } = unpack(this.message);
    this.data = { ...header, side: header.squares.queries.length };
    this.host.setAttribute('aria-label', header.alt);
    this.line.dataset.hint = header.words.hint;
    const text = toBase64(body.subarray(0, Math.ceil(header.n ** 2 / 8)));
    if (!before || before.n !== header.n) this.start();
    else if (before.refused !== header.refused) this.back(text);
    this.take(text, header.answered);
    this.arrange();
    this.offer(() => import('../../attention-lab.shared/painter/takeaway.js'), () => this.cells);
  }

  /** Another canvas: nothing is under way on it. */
  start() {
    this.history = historyOf(`${this.data.key} ${this.data.n}`);
    this.cells = this.cell = this.stroke = null;
    this.sentAt = -Infinity;
  }

  /** What was painted last cannot be had: the mask is the one before. */
  back(text) {
    this.history.forget(text);
    this.cells = this.stroke = null;
  }

  /** The mask that Python says, unless it comes amid a stroke, or from before the last one was `answered`. */
  take(text, answered) {
    const late = answered < this.at && performance.now() - this.sentAt < TRUST;
    if (this.cells && (this.stroke || late)) return;
    this.history.go(text);
    this.cells = unpackCells(text, this.data.n ** 2);
  }

  paint(context) {
    paint(context, this.data, this.layout, this.theme, this.ratio, this.cells);
  }

  /** What a stroke and the pointer change. */
  mark(context) {
    repaint(this.base.getContext('2d'), this.data, this.layout, this.theme, this.ratio, this.cells);
    const brushed = this.cell && !this.foreign && !this.stroke ? this.touched(this.cell, this.cell) : new Set();
    mark(context, this.data, this.layout, this.theme, this.ratio, this.cell, brushed);
  }

  touched(from, to) {
    return touched(this.brush, this.data.side, from, to, this.mirrors);
  }

  /** Say what the pointer is on, which queries see nothing, and which tools can be used. */
  tell() {
    this.say(this.cell ? sentence(this.data, this.cells, this.cell) : '');
    const warning = blindness(this.data, blindRows(this.cells, this.data.n));
    if (this.warned.textContent !== warning) this.warned.textContent = warning;
    for (const button of this.tools.querySelectorAll('button')) {
      const { brush, mirror, act } = button.dataset;
      if (brush) button.setAttribute('aria-checked', brush === this.brush);
      if (mirror) button.setAttribute('aria-pressed', this.mirrors[mirror]);
      // Not `disabled`: a button that had the focus would lose it.
      if (act === 'undo') button.setAttribute('aria-disabled', !this.history.past.length);
      if (act === 'redo') button.setAttribute('aria-disabled', !this.history.future.length);
    }
  }

  // --- the pointer

  pick(x, y, near = false) {
    return pick(this.layout, x, y, near);
  }

  begin(event) {
    const cell = event.button === 0 && event.isPrimary ? this.under(event) : null;
    if (!cell) return;
    this.host.setPointerCapture(event.pointerId);
    this.touchDown(cell);
    this.point(cell);
  }

  /** The first touch says what the stroke paints: a square of which all may be seen is forbidden, any other allowed. */
  touchDown(cell) {
    const index = cell.row * this.data.side + cell.column;
    const value = counts(this.cells, this.data)[index] === size(this.data, index) ? 0 : 1;
    this.stroke = { value, from: cell, to: cell, before: this.cells };
    this.draw(cell);
  }

  move(event) {
    if (!this.stroke) return this.point(this.under(event));
    for (const each of event.getCoalescedEvents?.() ?? []) this.draw(this.under(each, true));
    this.draw(this.under(event, true));
    this.point(this.under(event, true));
  }

  /** Take the stroke on to `cell`; a box spans from where it began, any other brush adds to what it has painted. */
  draw(cell) {
    const { stroke } = this;
    const box = this.brush === 'box';
    this.cells = (box ? stroke.before : this.cells).slice();
    fill(this.cells, this.data, this.touched(box ? stroke.from : stroke.to, cell), stroke.value);
    stroke.to = cell;
    this.redraw();
  }

  finish() {
    if (!this.stroke) return;
    this.stroke = null;
    this.send();
  }

  abandon() {
    if (this.stroke) this.cells = this.stroke.before;
    this.stroke = null;
    this.redraw();
  }

  /** One message a stroke: the whole mask, and when it was made, so that none is answered twice or late. */
  send() {
    const cells = pack(this.cells);
    this.redraw();
    if (cells === this.history.now) return;
    this.history.go(cells);
    this.report(cells);
  }

  report(cells) {
    this.sentAt = performance.now();
    this.at = Math.max(Date.now(), this.at + 1); // strictly later, however quick the hand
    this.fire('stroke', { n: this.data.n, cells, at: this.at });
  }

  /** The square that is pointed at: here, or by `foreign` hands in another picture of the same pattern. */
  point(cell, foreign = false) {
    if (cell?.row === this.cell?.row && cell?.column === this.cell?.column) return;
    [this.cell, this.foreign] = [cell, foreign];
    this.redraw();
    if (!foreign && this.data.link) announce(this.data.link, cell && { ...cell, rows: this.data.side, columns: this.data.side }, this);
  }

  follow(cell) {
    const fits = cell && cell.rows === this.data.side && cell.columns === this.data.side;
    this.point(fits ? { row: cell.row, column: cell.column } : null, true);
  }

  // --- keys and buttons

  key(event) {
    const letter = event.key.toLowerCase();
    const command = (event.ctrlKey || event.metaKey) && !event.altKey;
    const onCanvas = event.composedPath()[0] === this.host;
    if (command && letter === 'z') this.act(event.shiftKey ? 'redo' : 'undo');
    else if (command && letter === 'y') this.act('redo');
    else if (command || event.altKey) return;
    else if (event.key === 'Escape' && this.stroke) this.abandon();
    else if (onCanvas && ARROWS[event.key]) this.walk(...ARROWS[event.key]);
    else if (onCanvas && (event.key === ' ' || event.key === 'Enter')) this.dab();
    else if (!onCanvas && ARROWS[event.key] && event.target.dataset?.brush) this.next(event.target, ARROWS[event.key]);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  walk(down, across) {
    const clamp = (value) => Math.max(0, Math.min(this.data.side - 1, value));
    this.point(this.cell ? { row: clamp(this.cell.row + down), column: clamp(this.cell.column + across) } : { row: 0, column: 0 });
  }

  /** A stroke of one touch, where the keyboard's cursor is. */
  dab() {
    if (this.stroke) return;
    if (!this.cell) this.walk(0, 0);
    this.touchDown(this.cell);
    this.finish();
  }

  /** Along the brushes, as radio buttons do (WAI-ARIA). */
  next(button, [down, across]) {
    const at = (BRUSHES.indexOf(button.dataset.brush) + down + across + BRUSHES.length) % BRUSHES.length;
    const other = this.tools.querySelector(`[data-brush=${BRUSHES[at]}]`);
    this.tool(other);
    other.focus();
  }

  tool(button) {
    if (!button) return;
    const { brush, mirror, act } = button.dataset;
    if (brush) this.brush = brush;
    if (brush) this.tools.querySelectorAll('[data-brush]').forEach((each) => (each.tabIndex = each === button ? 0 : -1));
    if (mirror) this.mirrors[mirror] = !this.mirrors[mirror];
    if (act) this.act(act);
    this.tell();
  }

  act(name) {
    if (this.stroke) return;
    if (name === 'undo' || name === 'redo') {
      const text = this.history[name]();
      if (text === null) return;
      this.cells = unpackCells(text, this.data.n ** 2);
      this.redraw();
      this.report(text);
      return;
    }
    this.cells = this.cells.map((cell) => (name === 'clear' ? 1 : 1 - cell));
    this.send();
  }

  dispose() {
    super.dispose();
    this.silence();
  }
}
