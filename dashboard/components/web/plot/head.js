// A figure of one head, asked by pointer and key: the cell pointed at in a sentence, a locked token, its arcs alone.
// What can be asked stands in `layout.meta.head` and `layout.meta.tokens` (see dashboard/figures/head_focus.py).

import { choose } from '../kit/link.js';
import { cellAt, placeOf } from '../matrix/data.js';
import { band, matrices } from './crosshair.js';
import { axisOf, isButton, span, valueAt } from './plotly_private.js';

const ARROWS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
const TRUST = 1500; // ms for which a lock made here stands against an older one still coming from Python
const STILL = 4; // pixels that a click may move
const FAINT = 0.002; // a token's weaker arcs are not drawn
const [TOLD, STRONG, LINE] = [3, 0.05, 14]; // so many weights are written, from so much on, so many pixels apart
const BEND = 0.45; // as in head_focus.py
const HELP = 'Arrow keys move from cell to cell; Enter locks the query, Escape unlocks it.';

/** Places are those of the whole pattern, from 0. A cell is {row, column}; a token of the arcs is one of the two alone. */
export class Head {
  /** `plot` hosts the figure: {host, stage, fire, announce(cell), point()}; point() calls refresh() with the next frame. */
  constructor(plot) {
    this.plot = plot;
    this.cell = this.locked = null;
    this.lockedAt = -Infinity;
    this.layer = drawing('svg', { class: 'al-plot-arcs', 'aria-hidden': 'true' });
    this.button = element('button', { type: 'button', class: 'al-plot-lock', hidden: '' });
    this.line = element('p', { class: 'al-plot-sentence', role: 'status', 'aria-live': 'polite' });
    const help = element('p', { class: 'al-plot-help', id: `help-${Math.random().toString(36).slice(2)}` });
    help.textContent = HELP;
    const { host, stage } = plot;
    host.after(this.button, this.line, help);
    host.setAttribute('role', 'application');
    host.setAttribute('aria-describedby', help.id);
    stage.addEventListener('pointermove', (event) => event.buttons || this.hover(this.under(event)));
    stage.addEventListener('pointerleave', () => this.hover(null));
    stage.addEventListener('pointerdown', (event) => this.press(event));
    this.button.addEventListener('click', () => this.lock(null));
  }

  /** Another figure will be drawn: `meta` is of its layout. */
  update({ head, tokens, link }) {
    const size = (of) => of && `${of.tokens.y.length} ${of.tokens.x.length}`;
    const other = size(this.sent) !== size({ tokens });
    this.sent = { ...head, tokens };
    if (link) choose(link, head.number, this.plot);
    if (other) this.cell = null;
    if (other || performance.now() - this.lockedAt > TRUST) this.settle(other);
  }

  /** Take the lock that Python says; one on a key is known here only. */
  settle(other) {
    if (this.sent.locked !== null) this.locked = { row: this.sent.locked };
    else if (other || this.locked?.row !== undefined) this.locked = null;
  }

  // --- what is drawn

  /**
   * The matrices on the screen: `views` of the same cells, what is `grey` in the first of them, and the `whole`. No views
   * while Plotly draws. Of a view that holds no number, all being forbidden, Plotly shows the grey alone: it stands for it.
   */
  read() {
    const all = matrices(this.plot.stage);
    const whole = all.find(({ trace }) => trace.meta?.view === 'whole');
    const cells = all.filter(({ x, trace: { meta } }) => x !== whole?.x && (meta?.view || meta?.forbidden));
    const views = cells.filter(({ x }, i) => cells.findIndex((other) => other.x === x) === i);
    return { views, grey: cells.find(({ x, trace }) => trace.meta.forbidden && x === views[0].x), whole };
  }

  /** Where the axes of the arcs stand: across, the queries' and the keys'. */
  axes() {
    return this.sent.arcs.axes.map((name) => span(axisOf(this.plot.stage, name)));
  }

  /** The key that a query looks at most, or the query that looks at a key most, of those in view; null without any. */
  strongest({ row, column }) {
    const { views, grey } = this.read();
    const [view] = views;
    let best = null;
    for (let i = 0; i < (row === undefined ? view.rows : view.columns); i++) {
      const at = row === undefined ? { row: i, column } : { row, column: i };
      const value = valueOf(view, at);
      if (!isForbidden(grey, at) && (best === null || value > best.value)) best = { ...at, value };
    }
    return best;
  }

  // --- pointing

  /** What is under the pointer: a cell, {whole: a cell}, or a token of the arcs; null where there is nothing. */
  under(event) {
    const { left, top } = this.plot.stage.getBoundingClientRect();
    const [px, py] = [event.clientX - left, event.clientY - top];
    const { views, whole } = this.read();
    if (!views.length) return null;
    for (const matrix of whole ? [...views, whole] : views) {
      const [column, row] = [place(matrix.x, matrix.edges.x, px), place(matrix.y, matrix.edges.y, py)];
      if (row === null || column === null) continue;
      const { row: down, column: across } = cellAt(matrix, row, column);
      return { row: down, column: across, whole: matrix === whole };
    }
    if (!this.sent.arcs) return null;
    const [across, queries] = this.axes();
    const [x, y] = [(px - across.start) / across.length, (py - queries.start) / queries.length];
    const margin = this.sent.arcs.names / across.length;
    if (x < -margin || x > 1 + margin || y < 0 || y >= 1) return null;
    const [view] = views;
    const { row, column } = cellAt(view, Math.floor(y * view.rows), Math.floor(y * view.columns));
    return x < 0.6 ? { row } : { column };
  }

  hover(at) {
    const cell = at && { row: at.row, column: at.column };
    if (JSON.stringify(cell) !== JSON.stringify(this.cell)) this.go(cell);
  }

  /** Speak of this cell or token, here and in the other pictures of the head. */
  go(cell) {
    this.cell = cell;
    this.plot.announce(this.spot());
  }

  /** The cell that is spoken of, as pictures share it: of a token the one that it has most to do with. */
  spot() {
    const [view] = this.read().views;
    if (!this.cell || !view) return null;
    if (this.cell.row !== undefined && this.cell.column !== undefined) return { ...cellAt(view, 0, 0), ...this.cell };
    const at = this.strongest(this.local(this.cell));
    return at && cellAt(view, at.row, at.column);
  }

  /** Another picture of this head has its pointer on `cell`. */
  follow(cell) {
    const [view] = this.read().views;
    const fits = cell && view?.whole[0] === cell.rows && view.whole[1] === cell.columns;
    this.cell = fits ? { row: cell.row, column: cell.column } : null;
  }

  // --- the lock

  /** A click: locks a query or a key, or moves the window. Plotly covers the page while a button is down. */
  press(down) {
    const at = down.button === 0 && !isButton(down.target) && this.under(down);
    if (!at) return;
    const up = ({ clientX, clientY }) => {
      if (Math.hypot(clientX - down.clientX, clientY - down.clientY) > STILL) return;
      if (at.whole) this.plot.fire('click', { window: { row: at.row, column: at.column } });
      else this.lock(at.row === undefined ? { column: at.column } : { row: at.row });
    };
    window.addEventListener('pointerup', up, { once: true, capture: true });
  }

  /** Let the lines of a token stay; the same token again, or null, lets them go. */
  lock(token) {
    const before = this.locked;
    const again = token && before && token.row === before.row && token.column === before.column;
    this.locked = again ? null : token;
    this.lockedAt = performance.now();
    this.plot.point();
    const row = this.locked?.row;
    if (row !== before?.row) this.plot.fire('click', { lock: row ?? -1 });
  }

  /** Answer a key; whether it was one of ours. */
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || this.plot.preview.stands || !this.read().views.length) return false;
    const arrow = ARROWS[event.key];
    if (arrow) this.move(...arrow);
    else if (event.key === 'Enter' || event.key === ' ') this.lock({ row: (this.spot() ?? this.begin()).row });
    else if (event.key === 'Escape' && this.locked) this.lock(null);
    else return false;
    return true;
  }

  begin() {
    const [view] = this.read().views;
    const row = this.local(this.locked ?? {}).row ?? 0;
    return cellAt(view, row, this.strongest({ row })?.column ?? 0);
  }

  move(down, across) {
    const [view] = this.read().views;
    const spot = this.spot();
    const at = spot && placeOf(view, spot);
    const clamp = (value, count) => Math.max(0, Math.min(count - 1, value));
    this.go(at ? cellAt(view, clamp(at.row + down, view.rows), clamp(at.column + across, view.columns)) : this.begin());
  }

  // --- words

  /** Where a place stands in the views, from 0; what is not in them has none. */
  local({ row, column }) {
    const [{ first, factor, rows, columns }] = this.read().views;
    const inside = (at, begin, count) => {
      const found = at === undefined ? -1 : Math.floor((at - begin) / factor);
      return found >= 0 && found < count ? found : undefined;
    };
    return { row: inside(row, first[0], rows), column: inside(column, first[1], columns) };
  }

  /** "at 9"; of a block of tokens "from 9 on". */
  where(at) {
    return this.read().views[0].factor > 1 ? `from ${at + 1} on` : `at ${at + 1}`;
  }

  looking(row) {
    const label = this.sent.tokens.y[this.local({ row }).row];
    return `query ${label === undefined ? '' : `'${label}' `}${this.where(row)}`;
  }

  asked(column) {
    const label = this.sent.tokens.x[this.local({ column }).column];
    return `key ${label === undefined ? '' : `'${label}' `}${this.where(column)}`;
  }

  /** What a query is called in words: query '3' at 9, or what is said there. */
  asker(row) {
    const at = this.local({ row }).row;
    const said = this.sent.says?.[at];
    return said === undefined ? this.looking(row) : `output '${said}' at ${row + 1}`;
  }

  /** What a cell says, in one sentence. Positions count from 1. */
  sentence(cell) {
    const { views, grey } = this.read();
    const at = placeOf(views[0], cell);
    const who = capital(this.asker(cell.row));
    const whom = this.asked(cell.column);
    if (!at) return `${who}, ${whom}: outside the window; click in the whole to go there`;
    if (isForbidden(grey, at)) return `${who} may not see ${whom}`;
    const numbers = views.map((view) => `${view.trace.meta.view} ${number(valueOf(view, at), view.trace.meta.digits)}`);
    return `${who} reads ${whom}: ${numbers.join(' · ')}`;
  }

  tell(spot) {
    const { cell, locked } = this;
    this.button.hidden = !locked;
    if (locked) say(this.button, `Locked: ${locked.row === undefined ? this.asked(locked.column) : this.looking(locked.row)} · unlock (Esc)`);
    if (spot) say(this.line, this.sentence(spot));
    else if (!cell) say(this.line, '');
    else say(this.line, cell.row === undefined ? `No query in view may see ${this.asked(cell.column)}` : `${capital(this.asker(cell.row))} may see nothing`);
  }

  // --- what follows the pointer

  /** Say what is pointed at, frame what is locked, and draw the arcs of one token alone. */
  refresh() {
    const { stage, crosshair, preview } = this.plot;
    if (preview.stands || !this.read().views.length) return; // numbers of the head before are not those of the pattern
    if (this.layer.nextSibling !== crosshair.layer) crosshair.layer.before(this.layer);
    this.tell(this.spot());
    const parts = [];
    const { cell, locked } = this;
    if (locked) parts.push(...this.frames(this.local(locked)));
    const spoken = locked ?? (cell && (cell.row === undefined ? cell : { row: cell.row }));
    const token = spoken && this.local(spoken);
    if (token && this.sent.arcs && (token.row !== undefined || token.column !== undefined)) parts.push(...this.alone(token, spoken));
    this.layer.setAttribute('viewBox', `0 0 ${stage.clientWidth} ${stage.clientHeight}`);
    this.layer.replaceChildren(...parts);
  }

  /** The locked row or column of each matrix, in a frame. */
  frames({ row, column }) {
    return this.read().views.flatMap((view) => {
      if (row === undefined && column === undefined) return [];
      const { frame, row: along, column: across } = band(view, row ?? 0, column ?? 0);
      const [x, width] = row === undefined ? [frame.left + across.start, across.end - across.start] : [frame.left, frame.width];
      const [y, height] = row === undefined ? [frame.top, frame.height] : [frame.top + along.start, along.end - along.start];
      return [drawing('rect', { class: 'frame', x, y, width, height })];
    });
  }

  /** The arcs of one token, those of the others gone, with the greatest weights; `row` and `column` count from the window's. */
  alone({ row, column }, spoken) {
    const { views, grey } = this.read();
    const [view] = views;
    const [across, queries, keys] = this.axes();
    const [left, right] = [across.start, across.start + across.length];
    const level = ({ start, length }, i, count) => start + ((i + 0.5) / count) * length;
    const asks = row !== undefined;
    const found = [];
    for (let i = 0; i < (asks ? view.columns : view.rows); i++) {
      const at = asks ? { row, column: i } : { row: i, column };
      const weight = valueOf(view, at);
      if (isForbidden(grey, at) || !(weight >= FAINT)) continue;
      found.push({ weight, from: level(queries, at.row, view.rows), to: level(keys, at.column, view.columns) });
    }
    const bend = BEND * (right - left);
    const lines = found.map(({ weight, from, to }) =>
      drawing('path', {
        d: `M${left},${from}C${left + bend},${from} ${right - bend},${to} ${right},${to}`,
        'stroke-width': 0.5 + 2.5 * weight,
        'stroke-opacity': Math.min(1, 0.08 + 0.92 * weight),
      })
    );
    const told = found.filter(({ weight }) => weight >= STRONG).sort((one, other) => other.weight - one.weight).slice(0, TOLD);
    const written = []; // the stronger come first, and none is written over
    for (const { weight, from, to } of told) {
      const y = asks ? to : from;
      if (written.every((other) => Math.abs(other.y - y) >= LINE)) written.push({ y, weight });
    }
    const end = asks ? right - 2 : left + 2;
    const numbers = written.map(({ weight, y }) => label(weight.toFixed(2), end, y, asks ? 'end' : 'start'));
    const name = asks ? this.sent.tokens.y[row] : this.sent.tokens.x[column];
    const at = asks ? level(queries, row, view.rows) : level(keys, column, view.columns);
    const chip = label(name.replaceAll('\n', '↵'), asks ? left - 6 : right + 6, at, asks ? 'end' : 'start');
    chip.classList.add(this.locked === spoken ? 'locked' : 'named');
    const ground = drawing('rect', { class: 'ground', x: left, y: queries.start, width: right - left, height: queries.length });
    return [ground, ...lines, ...numbers, chip];
  }
}

/** What a matrix says at a row and column of its own: of one that is drawn in shares of each row, the number itself. */
function valueOf({ z, trace }, { row, column }) {
  const given = trace.meta?.numbers === 'customdata' ? trace.customdata : z;
  return Number(given[row]?.[column] ?? NaN);
}

const isForbidden = (grey, { row, column }) => Number.isFinite(grey?.z[row]?.[column]);

/** Which cell of an axis is at a pixel of the figure; null outside. */
function place(axis, edges, px) {
  const { start, length } = span(axis);
  const along = px - start;
  const at = Math.floor((valueAt(axis, along) - edges[0]) / (edges[1] - edges[0]));
  return along >= 0 && along < length && at >= 0 && at < edges.length - 1 ? at : null;
}

const number = (value, digits) => value.toFixed(digits).replace('-', '−');
const capital = (words) => `${words[0].toUpperCase()}${words.slice(1)}`;

function say(place, words) {
  if (place.textContent !== words) place.textContent = words;
}

/** Words on a ground of their own: a box as wide as they may be, in letters of 12 pixels. */
function label(words, x, y, anchor) {
  const group = drawing('g', {});
  const wide = 7 * [...words].length + 6;
  group.append(drawing('rect', { x: anchor === 'end' ? x - wide + 2 : x - 2, y: y - 9, width: wide, height: 18 }));
  const text = drawing('text', { x: anchor === 'end' ? x - wide / 2 + 2 : x + wide / 2 - 2, y });
  text.textContent = words;
  group.append(text);
  return group;
}

const drawing = (name, attributes) => filled(document.createElementNS('http://www.w3.org/2000/svg', name), attributes);
const element = (name, attributes) => filled(document.createElement(name), attributes);

function filled(made, attributes) {
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}
