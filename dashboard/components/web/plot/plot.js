// Hosts Plotly.react: a figure is updated in place, so its node and zoom survive new data.

import { announce, listen, screen, take } from '../../attention-lab.shared/kit/link.js';
import { mounting } from '../../attention-lab.shared/kit/mount.js';
import { same, unpack } from '../../attention-lab.shared/kit/payload.js';
import { cellAt } from '../../attention-lab.shared/matrix/data.js';
import { Crosshair, matrices } from '../../attention-lab.shared/plot/crosshair.js';
import { Cursor } from '../../attention-lab.shared/plot/cursor.js';
import { Head } from '../../attention-lab.shared/plot/head.js';
import { askedRanges, config, resetZoom } from '../../attention-lab.shared/plot/modebar.js';
import { placeFor, placed } from '../../attention-lab.shared/plot/places.js';
import { loadPlotly } from '../../attention-lab.shared/plot/plotly_loader.js';
import { emptied, hoverLayer, pictures, styleSheets } from '../../attention-lab.shared/plot/plotly_private.js';
import { Preview } from '../../attention-lab.shared/plot/preview.js';
import { crowded, occasion, thinned, update } from '../../attention-lab.shared/plot/ticks.js';
import { menu } from '../../attention-lab.shared/takeaway/menu.js';

export default mounting('plot', (root) => new Plot(root.querySelector('.al-plot')));

/** Wait for the fonts that are asked for. Their promise alone waits for the whole document, too. */
const fonts = () => (document.fonts.status === 'loading' ? document.fonts.ready : null);

class Plot {
  constructor(host) {
    this.host = host;
    this.stage = host.querySelector('.al-plot-stage');
    this.crosshair = new Crosshair(host.querySelector('.al-plot-crosshair'));
    this.wanted = null; // the newest figure not yet drawn
    this.link = null; // the group this figure shares its hover with
    this.cell = null; // the cell under the crosshair
    this.frame = 0;
    this.draws = this.frames = 0;
    this.sizes = new ResizeObserver(() => this.resize());
    this.sizes.observe(this.stage);
    this.silence = listen(this, (cell, group) => group === this.link && this.follow(cell));
    this.leaveReplay = screen(this, (film) => this.preview?.replay(film) ?? false);
    this.refuse = take(this, (pattern, group) => group === this.link && this.preview?.show(pattern));
    host.addEventListener('keydown', (event) => {
      if (!this.attached) return;
      if (this.head?.key(event) || this.cursor?.key(event)) event.preventDefault();
      else if (event.key === 'Escape') this.reset();
      else return;
      event.stopPropagation();
    });
    host.__plot = this;
  }

  update(message, fire) {
    this.fire = fire;
    const ink = getComputedStyle(this.host).getPropertyValue('--st-text-color').trim();
    if (same(message, this.message) && ink === this.ink) return;
    this.message = message.slice();
    this.ink = ink;
    const { header, figure } = read(this.message);
    this.grow(figure.layout, header.height);
    if (!this.shown) this.name(header.alt);
    if (figure.layout.meta?.head) {
      this.preview ??= new Preview(this);
      (this.head ??= new Head(this)).update(figure.layout.meta);
    }
    this.wanted = { header, figure: { ...figure, layout: this.layout(figure.layout ?? {}, header) } };
    this.draw();
  }

  /** What a screen reader says in place of the picture. */
  name(words) {
    this.host.setAttribute('aria-label', words);
    const alt = this.host.querySelector('.al-plot-alt');
    alt.setAttribute('aria-label', words);
    alt.role = 'img'; // not before it has its name
  }

  /** Be as high as the figure, which may depend on the width. */
  grow(layout, height) {
    this.host.style.height = `${placeFor(layout, this.stage.clientWidth)?.height ?? height}px`;
  }

  /** The figure's layout, fitted to its place. */
  layout({ width, transition, ...layout }, header) {
    if (transition && !matchMedia('(prefers-reduced-motion: reduce)').matches) layout.transition = transition;
    const modebar = { orientation: 'v', bgcolor: 'rgba(0,0,0,0)', color: this.ink, activecolor: this.ink, ...layout.modebar };
    return { uirevision: header.revision, ...layout, modebar, autosize: true, height: header.height };
  }

  /** Draw what is wanted; while one drawing is under way newer figures replace each other, so none pile up. */
  async draw() {
    if (this.drawing) return;
    this.drawing = true;
    try {
      while (this.wanted && !this.preview?.holds(this.wanted.figure) && !this.disposed) {
        const [Plotly] = await Promise.all([loadPlotly(this.wanted.header.plotly), fonts()]);
        if (this.disposed || this.stage.clientWidth === 0) break; // in a closed tab: resize() comes back here
        const { header, figure } = this.wanted;
        this.wanted = null;
        // The same configuration each time: react() starts anew, zoom lost, where a function in it is another one.
        this.config ??= config(Plotly, () => this.reset(), Boolean(figure.layout.meta?.link || figure.layout.meta?.cursor)); // of cells
        this.asked = askedRanges(figure.layout);
        this.width = this.stage.clientWidth;
        this.grow(figure.layout, header.height);
        const room = occasion(figure.layout, this.width, header.height);
        const known = this.labels?.room === room;
        const layout = thinned(placed(figure.layout, this.width), known ? this.labels.every : {});
        for (const place of emptied(this.stage)) place.remove();
        await Plotly.react(this.stage, fitting(figure.data, this.width), layout, this.config);
        if (!known) await this.space(Plotly, figure.layout, room);
        this.shown = { header, figure };
        this.drawn(figure);
      }
    } catch (error) {
      this.fail(error);
    } finally {
      this.drawing = false;
      if (this.disposed) this.leave();
    }
  }

  /** Take labels away where they touch, now that they are drawn; the next figure in the same room goes without them. */
  async space(Plotly, layout, room) {
    const every = room ? crowded(this.stage, layout) : {};
    this.labels = { room, every };
    if (Object.keys(every).length) await Plotly.relayout(this.stage, update(layout, every));
  }

  spaced(figure) {
    return { ...figure, layout: thinned(placed(figure.layout, this.width), this.labels?.every) };
  }

  drawn(figure) {
    if (this.disposed) return;
    this.link = figure.layout.meta?.link ?? null;
    if (!this.attached) this.attach();
    const { cursor } = figure.layout.meta ?? {};
    if (cursor) (this.cursor ??= new Cursor(this)).drawn(cursor);
    else this.cursor = this.cursor?.dispose();
    // Under the hover labels, which are to stay legible; Plotly may have built its layers anew.
    hoverLayer(this.stage)?.before(this.crosshair.layer);
    for (const picture of pictures(this.stage)) picture.setAttribute('aria-hidden', 'true');
    this.host.querySelector('.al-plot-failure').hidden = true;
    this.name(this.shown.header.alt);
    this.preview?.end();
    this.host.dataset.state = 'ready';
    this.host.dataset.draws = ++this.draws;
    if (this.head) this.host.dataset.head = figure.layout.meta.head.name;
    this.host.removeAttribute('aria-busy');
    this.point(); // the axes may have moved under the crosshair
  }

  fail(error) {
    this.wanted = null;
    this.message = null; // so that the same figure is tried again
    const sentence = this.host.querySelector('.al-plot-failure');
    sentence.textContent = window.Plotly
      ? `This figure could not be drawn (${error?.message ?? error}).`
      : 'This figure needs plotly.js, which the server did not deliver. Reload the page to try again.';
    sentence.hidden = false;
    this.host.dataset.state = 'failed';
    this.host.removeAttribute('aria-busy');
  }

  attach() {
    this.attached = true;
    this.dress();
    menu(this.host, this.given());
    this.stage.on('plotly_click', ({ points }) => points?.length && !this.head && !this.cursor && this.fire('click', record(points[0])));
    // Plotly hovers every 50 ms. What it has put off until the button is down would forget the point, and lose the click.
    this.stage.on('plotly_beforehover', () => !this.pressed);
    this.stage.addEventListener('pointerdown', () => this.press(), true);
    this.stage.on('plotly_hover', ({ points }) => this.hover(points?.[0]));
    this.stage.on('plotly_unhover', () => this.hover(null));
    this.stage.on('plotly_doubleclick', () => this.reset());
    this.stage.on('plotly_relayout', () => this.point());
  }

  /** What is in a shadow root sees no style sheet of the document: it gets copies of Plotly's. */
  dress() {
    const root = this.host.getRootNode();
    if (!(root instanceof ShadowRoot)) return;
    const copy = new CSSStyleSheet();
    copy.replaceSync(styleSheets().flatMap(({ cssRules }) => [...cssRules].map(({ cssText }) => cssText)).join('\n'));
    root.adoptedStyleSheets = [...root.adoptedStyleSheets, copy];
  }

  /** What can be saved of it (see takeaway/menu.js): as Python sent it, for Plotly writes into what it is given. */
  given() {
    const sent = () => read(this.message);
    const made = () => import('../../attention-lab.shared/plot/takeaway.js');
    return {
      name: this.shown.header.revision,
      alt: () => this.shown.header.alt,
      makers: () => this.shown.header.makers ?? null,
      note: () => this.shown.figure.layout.meta?.note ?? '',
      svg: async () => (await made()).svg(this.stage),
      png: async () => (await made()).png(this.stage),
      body: async () => (await made()).body(this.stage, this.spaced(sent().figure), this.shown.header.plotly),
      series: async () => (await made()).series(sent().figure),
    };
  }

  reset() {
    resetZoom(window.Plotly, this.stage, this.asked);
  }

  hover(point) {
    if (!this.link || this.head) return; // a head follows the pointer itself, over its arcs as well
    const [row, column] = cellOf(point) ?? [];
    const matrix = row !== undefined && matrices(this.stage).find(({ number }) => number === point.curveNumber);
    this.announce(matrix ? cellAt(matrix, row, column) : null);
  }

  /** Point at a cell here, and in the other pictures of the link. */
  announce(cell) {
    this.point(cell);
    if (this.link) announce(this.link, cell, this);
  }

  /** Another picture of this link has its pointer on a cell. */
  follow(cell) {
    this.head?.follow(cell);
    this.point(cell);
  }

  /** Move the crosshair with the next frame. */
  point(cell = this.cell) {
    this.cell = cell;
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      if (!this.attached || this.disposed) return;
      this.frames++;
      this.crosshair.show(this.stage, this.link ? this.cell : null);
      this.head?.refresh();
    });
  }

  resize() {
    if (this.stage.clientWidth === 0) return;
    if (this.wanted) return this.draw();
    const width = this.stage.clientWidth;
    if (!this.attached || width === this.width) return;
    const { data, layout } = this.shown.figure;
    const other = fits(data, this.width) !== fits(data, width);
    if (other || occasion(layout, 0, 0) || placeFor(layout, 0)) {
      this.wanted = this.shown; // labels, traces or panels come, go or move with the room there is
      return this.draw();
    }
    window.Plotly.Plots.resize(this.stage).then(
      () => {
        this.width = width;
        this.point();
      },
      () => {}, // hidden meanwhile: the next size calls again
    );
  }

  /** The pointer is down, until it is let go or taken away. */
  press() {
    this.pressed = true;
    const over = new AbortController();
    const free = () => {
      this.pressed = false;
      over.abort();
    };
    for (const end of ['pointerup', 'pointercancel']) addEventListener(end, free, { signal: over.signal, capture: true });
  }

  dispose() {
    this.disposed = true;
    this.sizes.disconnect();
    this.silence();
    this.refuse();
    this.leaveReplay();
    this.preview?.end();
    this.cursor?.dispose();
    cancelAnimationFrame(this.frame);
    if (!this.drawing) this.leave();
  }

  /** Let Plotly forget the figure; never while it is still drawing it, for what it does later would find nothing. */
  leave() {
    window.Plotly?.purge(this.stage);
  }
}

/**
 * A message's header and figure. A heatmap whose rows and columns are the same things may name them once, as
 * `meta: {pairs: names}`: the text of each cell is two of them, and 144 names are shorter than 20,736 pairs.
 */
function read(message) {
  const { header, body } = unpack(message);
  const figure = JSON.parse(new TextDecoder().decode(body));
  for (const trace of figure.data) {
    const names = trace.meta?.pairs;
    if (names) trace.text = names.map((one) => names.map((other) => `${one}, ${other}`));
  }
  return { header, figure };
}

/** A trace may name the width under which it would only be clutter: `meta: {least_width: pixels}`. */
const fits = (traces, width) => traces.filter(({ meta }) => !(meta?.least_width > width)).length;
const fitting = (traces, width) => traces.map((trace) => (trace.meta?.least_width > width ? { ...trace, visible: false } : trace));

/** [row, column] of a heatmap's cell; null for a point of any other trace. */
function cellOf(point) {
  const place = point?.pointIndex ?? point?.pointNumber;
  return Array.isArray(place) && place.length === 2 ? place : null;
}

/** What Python is told of a clicked point. */
function record(point) {
  const [row, column] = cellOf(point) ?? [];
  const cell = row === undefined ? {} : { row, column };
  return {
    curve: point.curveNumber,
    name: point.fullData?.name ?? point.data.name ?? null,
    x: plain(point.x),
    y: plain(point.y),
    z: plain(point.z),
    customdata: plain(point.customdata),
    meta: plain(point.data.meta),
    ...cell,
  };
}

/** `value` as JSON can say it: typed arrays as lists, what is missing as null. */
function plain(value) {
  if (ArrayBuffer.isView(value)) return Array.from(value);
  return value ?? null;
}
