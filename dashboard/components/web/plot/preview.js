// The pattern of a head that was just chosen, from the grid, which holds it: it stands here before Python's figure comes.
// All else is still of the head before, and waits behind a veil.

import { isConnected, isRerunning } from '../kit/streamlit_private.js';
import { FORBIDDEN, MISSING, equal, levels } from '../matrix/data.js';
import { palette, thumbnail } from '../matrix/paint.js';
import { matrices } from './crosshair.js';
import { placeFor } from './places.js';
import { addressOf, cellsOf, readdress } from './plotly_private.js';

const LOOK = 750; // ms between two looks whether Python is still at work; after two at which it is not, no answer comes
const SAID = '[class*="st-key-of-head-"]'; // what is said of the head in focus (dashboard/parts/head_focus.py)
const STEP = 0.51; // of the 255 steps of the scale: nearer numbers have one colour

export class Preview {
  /** `plot` hosts the figure: {host, stage, width, shown, name(words), draw()}; draw() goes on with what was held back. */
  constructor(plot) {
    this.plot = plot;
    this.awaited = null; // the number of the head that was chosen, until its figure is drawn
    this.before = null; // Plotly's picture of the cells, while another stands in its place: its element and its address
    this.veil = document.createElement('div');
    this.veil.className = 'al-plot-veil';
    this.veil.append(document.createElement('div'));
    plot.host.append(this.veil);
  }

  /** Is this the figure of an older choice, while the newest is on its way? */
  holds(figure) {
    return this.awaited !== null && figure.layout.meta.head.number !== this.awaited;
  }

  /** Does the pattern of another head stand in this figure? */
  get stands() {
    return this.before !== null;
  }

  /** Head `number` of a grid was chosen. Where its pattern cannot stand in this figure, Python's is waited for as ever. */
  show({ data, number }) {
    const waiting = this.awaited !== null;
    this.undo();
    if (number === this.plot.shown.figure.layout.meta.head.number) {
      if (waiting) this.wait(number); // back to the head that stands, while another is on its way
      return;
    }
    const image = this.fitting(data, number);
    if (!image) return this.plot.draw(); // what was held back for the one before
    this.wait(number);
    this.before = { image, address: addressOf(image) };
    readdress(image, picture(data, data.panels[number]));
    const [width, height] = placeFor(this.plot.shown.figure.layout, this.plot.width).pattern;
    Object.assign(this.veil.firstChild.style, { width: `${width}px`, height: `${height}px` });
    window.Plotly.Fx.unhover(this.plot.stage); // its label says a number of the head before
    const { host } = this.plot;
    host.dataset.preview = number;
    // A rule with :has for the whole page would have the browser match it anew at each change of the page: 150 ms a click.
    for (const each of document.querySelectorAll(SAID)) each.dataset.waiting = '';
    host.setAttribute('aria-busy', 'true');
    this.plot.name(`Head ${data.panels[number].name}. Its pattern stands here; the rest is being drawn.`);
  }

  /**
   * The picture whose cells can be replaced; null where that could say what is not so. The grid has to show the head of
   * this figure just as the figure does, cell by cell: then both are of one input, and neither a window, nor downsampled,
   * nor on another scale; and the other head has to be of the same tokens and mask.
   */
  fitting(data, number) {
    const { stage, shown } = this.plot;
    const { head, tokens } = shown.figure.layout.meta;
    const [own, other] = [data.panels[head.number], data.panels[number]];
    const pattern = matrices(stage).find(({ trace }) => trace.meta?.view === 'pattern');
    const fits =
      pattern && own && other && !data.byRow && !pattern.trace.meta.numbers && own.group === other.group &&
      equal(own.queries, tokens.y) && equal(own.keys, tokens.x) && equal(other.queries, tokens.y) && equal(other.keys, tokens.x) &&
      equal(own.mask ?? [], other.mask ?? []) && alike(own, pattern);
    return fits ? cellsOf(stage, pattern.number) : null;
  }

  /** A moment of a replay in place of the head's cells; with null these again. Returns whether it shows one. */
  replay(film) {
    const found = film && this.awaited === null && this.plot.shown ? this.screen(film) : null;
    if (found?.image !== this.replayed?.image) {
      if (this.replayed) readdress(this.replayed.image, this.replayed.address);
      this.replayed = found && { ...found, address: addressOf(found.image) };
    }
    if (found) readdress(found.image, picture(film.look, found.head));
    return Boolean(found);
  }

  /** The picture of the cells, if it shows what a head of the film ends with; and that head. */
  screen({ panels }) {
    const { stage, shown } = this.plot;
    const { head: { number }, tokens } = shown.figure.layout.meta;
    if (this.fit?.panels !== panels || this.fit.figure !== shown.figure || !this.fit.image?.isConnected) {
      const head = panels[number];
      const pattern = matrices(stage).find(({ trace }) => trace.meta?.view === 'pattern');
      const fits =
        pattern && head && !pattern.trace.meta.numbers && equal(head.queries, tokens.y) &&
        equal(head.keys, tokens.x) && alike({ ...head, values: head.last }, pattern);
      this.fit = { panels, figure: shown.figure, head, image: fits ? cellsOf(stage, pattern.number) : null };
    }
    return this.fit.image ? this.fit : null;
  }

  /** Hold older figures back until that of head `number` is drawn. */
  wait(number) {
    this.awaited = number;
    clearInterval(this.timer);
    let idle = 0;
    this.timer = setInterval(() => {
      idle = isConnected() && isRerunning() ? 0 : idle + 1;
      if (idle < 2) return;
      this.undo();
      this.plot.draw();
    }, LOOK);
  }

  /** The figure that Plotly drew last stands again. */
  undo() {
    if (this.stands) {
      readdress(this.before.image, this.before.address);
      this.plot.name(this.plot.shown.header.alt);
    }
    this.end();
  }

  /** Plotly has drawn the figure that was awaited. */
  end() {
    this.awaited = this.before = null;
    clearInterval(this.timer);
    delete this.plot.host.dataset.preview;
    for (const each of document.querySelectorAll('[data-waiting]')) delete each.dataset.waiting;
    this.plot.host.removeAttribute('aria-busy');
  }
}

/** The cells of a panel as Plotly takes them, a pixel each: nothing where nothing may be seen, which has a trace of its own. */
function picture(data, panel) {
  const { rows, columns } = panel;
  const table = palette(data);
  table[FORBIDDEN] = table[MISSING] = 0;
  const canvas = document.createElement('canvas');
  [canvas.width, canvas.height] = [columns, rows];
  const cells = thumbnail(panel, levels(panel), { width: columns, height: rows, step: 1 }, table, 0, 1);
  canvas.getContext('2d').putImageData(cells, 0, 0);
  return canvas.toDataURL();
}

/** Does a panel hold the numbers of a matrix, as exactly as colours tell, and forbid the same cells? */
function alike({ values, mask, rows, columns }, { z, rows: down, columns: across }) {
  if (rows !== down || columns !== across) return false;
  const scale = values instanceof Float32Array ? 255 : 1;
  return values.every((value, i) => {
    const shown = z[Math.floor(i / columns)][i % columns];
    return mask && !mask[i] ? !Number.isFinite(shown) : Math.abs(255 * shown - scale * value) <= STEP;
  });
}
