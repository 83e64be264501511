// One head, large: its matrices and its arcs on one canvas, and a second one above it for what follows the pointer.

import { ARROWS, Canvases } from '../../attention-lab.shared/canvas/canvases.js';
import { asked, asker, decode, looking, sentence, strongest } from '../../attention-lab.shared/focus/data.js';
import { layOut, pick } from '../../attention-lab.shared/focus/layout.js';
import { mark, paint } from '../../attention-lab.shared/focus/paint.js';
import { announce, choose, listen } from '../../attention-lab.shared/kit/link.js';
import { mounting } from '../../attention-lab.shared/kit/mount.js';

const TRUST = 1500; // ms for which a lock made here stands against an older one still coming from Python

export default mounting((root) => new Focus(root));

class Focus extends Canvases {
  constructor(root) {
    super(root, { layOut, paint, mark }, '.focus');
    this.button = root.querySelector('.lock');
    this.locked = null; // {row} or {column}; of `cell` one is undefined over a token of the arcs
    this.lockedAt = -Infinity;
    this.silence = listen(this, (cell, group) => group === this.data?.link && this.follow(cell));
    this.host.addEventListener('pointermove', (event) => this.hover(this.under(event)));
    this.host.addEventListener('pointerleave', () => this.hover(null));
    this.host.addEventListener('click', (event) => this.click(this.under(event)));
    this.host.addEventListener('keydown', (event) => this.key(event));
    this.button.addEventListener('click', () => this.lock(null));
    this.host.__focus = this; // for tests: data, layout, cell, locked, frames
  }

  update(message, fire) {
    if (!this.news(message, fire)) return;
    const before = this.data;
    this.data = decode(this.message);
    this.host.setAttribute('aria-label', this.data.alt);
    if (this.data.link) choose(this.data.link, this.data.number, this);
    const other = before && (before.queries.length !== this.data.queries.length || before.keys.length !== this.data.keys.length);
    if (other) this.cell = null;
    if (other || performance.now() - this.lockedAt > TRUST) this.settle(other);
    this.arrange();
    this.host.dataset.head = this.data.head;
    this.offer(() => import('../../attention-lab.shared/focus/takeaway.js'), () => this.locked);
  }

  /** Take the lock that Python says; one on a key is known here only. */
  settle(other) {
    if (this.data.locked !== null) this.locked = { row: this.data.locked };
    else if (other || this.locked?.row !== undefined) this.locked = null;
  }

  mark(context) {
    mark(context, this.data, this.layout, this.theme, this.ratio, this.cell, this.locked);
  }

  pick(x, y) {
    return pick(this.data, this.layout, x, y);
  }

  hover(place) {
    const cell = place && this.whole(place);
    const moved = JSON.stringify(cell) !== JSON.stringify(this.cell);
    if (!moved) return;
    this.cell = cell;
    this.redraw();
    this.announce();
  }

  /** A place as a cell: a token of the arcs speaks of the cell that it has most to do with. */
  whole({ row, column }) {
    if (row !== undefined && column !== undefined) return { row, column };
    const at = strongest(this.data, row === undefined ? { column } : { row });
    return { row, column, at: at && { row: at.row, column: at.column } };
  }

  announce() {
    if (!this.data.link) return;
    const at = this.cell && (this.cell.at === undefined ? this.cell : this.cell.at);
    announce(this.data.link, at && { row: at.row, column: at.column, rows: this.data.queries.length, columns: this.data.keys.length }, this);
  }

  /** Another component of this link has its pointer on `cell`. */
  follow(cell) {
    const fits = cell && cell.rows === this.data.queries.length && cell.columns === this.data.keys.length;
    this.cell = fits ? { row: cell.row, column: cell.column } : null;
    this.redraw();
  }

  click(place) {
    if (!place) return;
    if (place.kind === 'whole') this.fire('window', { row: place.row, column: place.column });
    else this.lock(place.row === undefined ? { column: place.column } : { row: place.row });
  }

  /** Let the lines of a token stay; the same token again, or null, lets them go. */
  lock(token) {
    const again = token && this.locked && token.row === this.locked.row && token.column === this.locked.column;
    const before = this.locked;
    this.locked = again ? null : token;
    this.lockedAt = performance.now();
    this.redraw();
    const row = this.locked?.row;
    if (row !== before?.row) this.fire('lock', row ?? -1);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const arrow = ARROWS[event.key];
    if (arrow) this.move(...arrow);
    else if (event.key === 'Enter' || event.key === ' ') this.lock({ row: (this.cell ?? this.begin()).row });
    else if (event.key === 'Escape' && this.locked) this.lock(null);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  begin() {
    const row = this.locked?.row ?? this.data.first[0];
    return { row, column: strongest(this.data, { row })?.column ?? this.data.first[1] };
  }

  move(down, across) {
    const { first, rows, columns } = this.data;
    const at = this.cell?.at ?? (this.cell && this.cell.row !== undefined && this.cell.column !== undefined ? this.cell : null);
    const clamp = (value, low, count) => Math.max(low, Math.min(low + count - 1, value));
    this.cell = at ? { row: clamp(at.row + down, first[0], rows), column: clamp(at.column + across, first[1], columns) } : this.begin();
    this.redraw();
    this.announce();
  }

  /** Say what the pointer is on, and what is locked. */
  tell() {
    const { cell, data, locked } = this;
    this.button.hidden = !locked;
    if (locked) {
      const who = locked.row === undefined ? asked(data, locked.column) : looking(data, locked.row);
      const words = `Locked: ${who} · unlock (Esc)`;
      if (this.button.textContent !== words) this.button.textContent = words;
    }
    const at = cell && (cell.at ?? (cell.row !== undefined && cell.column !== undefined ? cell : null));
    let words = '';
    if (at) words = sentence(data, at.row, at.column);
    else if (cell) words = cell.row === undefined ? `No query in view may see ${asked(data, cell.column)}` : `${asker(data, cell.row)} may see nothing`;
    this.say(words);
  }

  dispose() {
    super.dispose();
    this.silence();
  }
}
