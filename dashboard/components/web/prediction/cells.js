// A head's pattern, whose cells are painted where one expects its attention; the weights appear under what was painted.

import { drawn, element } from './element.js';
import { written } from './fields.js';

const [SMALL, LARGE] = [18, 34]; // pixels of a cell, as many as the window has room for; less where there are many
const [NARROW, WIDE] = [480, 820]; // pixels of a pattern of small cells, and of any
const AROUND = 430; // pixels of the window above and below a pattern
const LABEL = 2.5; // cells' sides for the names of rows and columns
const LETTERS = 0.6; // of a cell's side, the height of its names
const ARROWS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

export class Cells {
  constructor({ rows, columns, allowed, weights }, changed) {
    Object.assign(this, { rows, columns, weights, changed });
    const bit = (place) => (allowed[place >> 3] >> (7 - (place & 7))) & 1;
    this.allowed = (row, column) => Boolean(bit(row * columns.length + column));
    this.painted = new Set();
    this.value = null;
    this.over = false;
    this.at = { row: 0, column: 0 };
    const small = Math.min(SMALL, NARROW / columns.length);
    const large = Math.min(LARGE, WIDE / columns.length, (innerHeight - AROUND) / (rows.length + LABEL));
    this.side = Math.floor(Math.max(small, large));
    this.label = Math.max(44, LABEL * this.side);
    const [width, height] = [this.label + this.side * columns.length, this.label + this.side * rows.length];
    this.svg = drawn('svg', { width, height, viewBox: `0 0 ${width} ${height}`, tabindex: 0, role: 'application', 'aria-labelledby': 'question', 'aria-describedby': 'hint' });
    this.svg.style.setProperty('--letters', `${Math.max(11, LETTERS * this.side)}px`);
    this.line = element('p', { className: 'hint', id: 'hint', role: 'status' });
    this.hint = 'Row = query (who looks), column = key (looked at). Drag to paint; arrow keys move, the space bar paints. Grey cells are forbidden.';
    this.host = element('div', { className: 'cells' }, this.svg, this.line);
    this.rects = rows.map((_, row) => columns.map((__, column) => this.cell(row, column)));
    this.names();
    this.cursor = drawn('rect', { class: 'cursor', width: this.side, height: this.side });
    this.svg.append(this.cursor);
    this.line.textContent = this.hint;
    this.svg.addEventListener('pointerdown', (event) => this.begin(event));
    this.svg.addEventListener('pointermove', (event) => event.buttons && this.stroke(event));
    this.svg.addEventListener('keydown', (event) => this.key(event));
    this.draw();
  }

  cell(row, column) {
    const place = { x: this.label + column * this.side, y: this.label + row * this.side, width: this.side - 1, height: this.side - 1 };
    const rect = drawn('rect', { ...place, class: this.allowed(row, column) ? 'cell' : 'forbidden' });
    this.svg.append(rect);
    return rect;
  }

  names() {
    const cut = (text) => ([...text].length > 5 ? `${[...text].slice(0, 4).join('')}…` : text).replaceAll('\n', '↵');
    this.rows.forEach((name, row) => {
      const label = drawn('text', { x: this.label - 5, y: this.label + (row + 0.72) * this.side, 'text-anchor': 'end' });
      label.textContent = cut(name);
      this.svg.append(label);
    });
    this.columns.forEach((name, column) => {
      const at = this.label + (column + 0.5) * this.side;
      const label = drawn('text', [...name].length > 2 ? { 'dominant-baseline': 'central', transform: `translate(${at}, ${this.label - 5}) rotate(-90)` } : { x: at, y: this.label - 5, 'text-anchor': 'middle' });
      label.textContent = cut(name);
      this.svg.append(label);
    });
  }

  /** The cell under the pointer, if one may be painted there. */
  under(event) {
    const box = this.svg.getBoundingClientRect();
    const scale = this.svg.viewBox.baseVal.width / box.width;
    const [x, y] = [(event.clientX - box.left) * scale, (event.clientY - box.top) * scale];
    const [row, column] = [Math.floor((y - this.label) / this.side), Math.floor((x - this.label) / this.side)];
    const inside = row >= 0 && row < this.rows.length && column >= 0 && column < this.columns.length;
    return inside && this.allowed(row, column) ? { row, column } : null;
  }

  begin(event) {
    const at = this.under(event);
    if (!at || this.over) return;
    this.svg.setPointerCapture(event.pointerId);
    this.erases = this.painted.has(this.number(at));
    this.paint(at, !this.erases);
  }

  stroke(event) {
    const at = this.under(event);
    if (at && !this.over) this.paint(at, !this.erases);
  }

  key(event) {
    const [row, column] = ARROWS[event.key] ?? [];
    if (row !== undefined) {
      const clamp = (value, count) => Math.min(count - 1, Math.max(0, value));
      this.at = { row: clamp(this.at.row + row, this.rows.length), column: clamp(this.at.column + column, this.columns.length) };
      this.draw();
      this.say();
    } else if ((event.key === ' ' || event.key === 'Enter') && !this.over) {
      if (this.allowed(this.at.row, this.at.column)) this.paint(this.at, !this.painted.has(this.number(this.at)));
      this.say();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  number = ({ row, column }) => row * this.columns.length + column;

  say() {
    const { row, column } = this.at;
    const is = this.allowed(row, column) ? (this.painted.has(this.number(this.at)) ? 'painted' : 'empty') : 'forbidden';
    const weight = this.over && is !== 'forbidden' ? `, weight ${written(this.weights[this.number(this.at)], 2)}` : '';
    this.line.textContent = `Query ${this.rows[row]} at ${row + 1}, key ${this.columns[column]} at ${column + 1}: ${is}${weight}.`;
  }

  paint(at, on) {
    this.at = at;
    if (on) this.painted.add(this.number(at));
    else this.painted.delete(this.number(at));
    this.value = this.painted.size ? { cells: [...this.painted] } : null;
    this.draw();
    this.changed();
  }

  draw() {
    this.rects.forEach((row, r) => row.forEach((rect, c) => rect.classList.toggle('painted', this.painted.has(this.number({ row: r, column: c })))));
    this.cursor.setAttribute('x', String(this.label + this.at.column * this.side - 0.5));
    this.cursor.setAttribute('y', String(this.label + this.at.row * this.side - 0.5));
  }

  reveal(cells = []) {
    this.over = true;
    this.painted = new Set(cells);
    this.svg.classList.add('over');
    this.rects.flat().forEach((rect, number) => this.weights[number] > 0 && rect.style.setProperty('--weight', String(this.weights[number])));
    this.draw();
    this.line.textContent = `${cells.length ? 'Outlined: your prediction. ' : ''}The darker a cell, the more attention it gets.`;
  }

  poll({ votes, mean }) {
    if (mean.length !== this.rows.length) return '';
    this.rects.forEach((row, r) =>
      row.forEach((rect, c) => {
        const [x, y] = ['x', 'y'].map((name) => Number(rect.getAttribute(name)) + (this.side - 1) / 2);
        const share = mean[r][c];
        this.dots ??= this.svg.appendChild(drawn('g', { class: 'room' }));
        const number = this.number({ row: r, column: c });
        const dot = this.dots.children[number] ?? this.dots.appendChild(drawn('circle', { cx: x, cy: y }));
        dot.setAttribute('r', String((share * this.side) / 3));
      })
    );
    return `The room: the larger a dot, the more of the ${votes} painted that cell.`;
  }

  /** How much of the attention of the painted rows lies on what was painted, beside that of a head that looks evenly. */
  compare({ cells }) {
    this.reveal(cells);
    let [hit, even] = [0, 0];
    const rows = new Set();
    this.rows.forEach((_, row) => {
      const seen = this.columns.filter((__, column) => this.allowed(row, column)).length;
      this.columns.forEach((__, column) => {
        const number = this.number({ row, column });
        if (!this.allowed(row, column)) return;
        if (!this.painted.has(number)) return;
        rows.add(row);
        hit += this.weights[number];
        even += 1 / seen;
      });
    });
    const [share, evenly] = [hit, even].map((sum) => written(sum / (rows.size || 1), 2));
    const where = rows.size === 1 ? 'the row' : `the ${rows.size} rows`;
    return `In ${where} where you painted, ${share} of the head's attention lies on your cells. A head that looks evenly would have ${evenly} there.`;
  }
}
