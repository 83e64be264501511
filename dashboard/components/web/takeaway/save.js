// Makes a figure's file, with its origin inside, and hands it to the reader.

import { isRerunning } from '../kit/streamlit_private.js';
import { csv } from './csv.js';
import { npz } from './npz.js';
import { page } from './page.js';
import { annotate } from './png_text.js';
import { arrays, table } from './series.js';

const TYPES = { svg: 'image/svg+xml', png: 'image/png', html: 'text/html', csv: 'text/csv', npz: 'application/zip' };
const PATIENCE = 5000; // ms

/** Save `figure` (see menu.js) as one of TYPES; `place` is an element beside it. */
export async function save(figure, format, place) {
  await settled();
  const origin = await read(figure, place);
  const content = await FILES[format](figure, origin);
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([content], { type: TYPES[format] }));
  link.download = `${stem(figure, origin)}.${format}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

const FILES = {
  svg: async (figure, origin) => describe(await figure.svg(), origin),
  png: async (figure, origin) => annotate(await figure.png(), chunks(origin)),
  html: async (figure, origin) => {
    const { csv: text, npz: packed } = numbers(await figure.series(), origin);
    const files = { csv: new TextEncoder().encode(text), npz: new Uint8Array(await packed.arrayBuffer()) };
    return page({ ...(await figure.body()), origin, credits: credits(origin), files, stem: stem(figure, origin) });
  },
  csv: async (figure, origin) => numbers(await figure.series(), origin).csv,
  npz: async (figure, origin) => numbers(await figure.series(), origin).npz,
};

/** While a rerun is under way, what stands on the page may be of two views. */
async function settled() {
  const end = performance.now() + PATIENCE;
  while (isRerunning() && performance.now() < end) {
    await new Promise((resolve) => setTimeout(resolve, 30));
  }
}

/**
 * Where the numbers come from. Python writes it once a rerun into an element of the page (components/origin.py): in the
 * message of each figure, a new link would redraw figures in which nothing else is new.
 */
async function read(figure, place) {
  // A part of a page that is redrawn alone says it anew, in its own place.
  const all = origins(place).sort((one, other) => other.dataset.at - one.dataset.at);
  const said = all[0]?.dataset.origin;
  if (!said) throw new Error('the page does not say where it comes from');
  const { query, makers, ...rest } = JSON.parse(said); // a document says its link (document/reader.js)
  const note = await figure.note();
  return {
    title: figure.alt(),
    link: `${location.origin}${location.pathname}?${query}`,
    ...rest,
    makers: figure.makers() ?? makers,
    made: new Date().toISOString(),
    ...(note && { note }),
  };
}

/** What says it in the page, or in the widget of a notebook, that `place` is in: the innermost root that has any. */
function origins(place) {
  for (let root = place.getRootNode(); root; root = root.host?.getRootNode()) {
    const found = [...root.querySelectorAll('.al-origin')];
    if (found.length) return found;
  }
  return [];
}

/** Whose weights, in words: "sha256:… (reverse, step 200)". */
function credits({ makers }) {
  return makers.map(({ run, step, weights }) => `${weights ? `sha256:${weights}` : 'not kept'} (${run}, step ${step})`);
}

function stem({ name }, { makers }) {
  const whose = makers.length === 1 ? `-${makers[0].run}-step${makers[0].step}` : makers.length ? `-${makers.length}-runs` : '';
  return `${name}${whose}`.replace(/[^A-Za-z0-9._-]+/g, '_').slice(0, 120);
}

function numbers(series, origin) {
  const head = given({ link: origin.link, weights: credits(origin).join(', '), made: origin.made, software: origin.software, note: origin.note });
  const text = { dtype: '<U', shape: [], data: [JSON.stringify(origin)] };
  return { csv: csv(table(series), head), npz: npz({ ...arrays(series), origin: text }) };
}

/** What there is something to say of: a model that was captured has no run, and no view. */
const given = (said) => Object.fromEntries(Object.entries(said).filter(([, words]) => words));

function chunks(origin) {
  return given({
    Title: origin.title,
    Source: origin.link,
    Software: origin.software,
    'Creation Time': origin.made,
    Weights: credits(origin).join(', '),
    origin: JSON.stringify(origin),
  });
}

/** The SVG with a title, and its origin as metadata that Inkscape shows (Dublin Core, in RDF). */
function describe(text, origin) {
  const svg = new DOMParser().parseFromString(text, 'image/svg+xml').documentElement;
  const namespaces = {
    svg: 'http://www.w3.org/2000/svg',
    rdf: 'http://www.w3.org/1999/02/22-rdf-syntax-ns#',
    dc: 'http://purl.org/dc/elements/1.1/',
    cc: 'http://creativecommons.org/ns#',
  };
  const make = (name, content) => {
    const [space, local] = name.includes(':') ? name.split(':') : ['svg', name];
    const made = document.createElementNS(namespaces[space], space === 'svg' ? local : name);
    made.append(...content);
    return made;
  };
  const work = make('cc:Work', [
    make('dc:title', [origin.title]),
    ...(origin.link ? [make('dc:source', [origin.link])] : []),
    ...credits(origin).map((credit) => make('dc:identifier', [credit])),
    make('dc:date', [origin.made]),
    make('dc:publisher', [make('cc:Agent', [make('dc:title', [origin.software])])]),
    make('dc:description', [JSON.stringify(origin)]),
  ]);
  const metadata = make('metadata', [make('rdf:RDF', [work])]);
  for (const space of ['rdf', 'cc', 'dc']) {
    metadata.setAttributeNS('http://www.w3.org/2000/xmlns/', `xmlns:${space}`, namespaces[space]); // once for all
  }
  svg.prepend(make('title', [origin.title]), metadata);
  return `<?xml version="1.0" encoding="UTF-8"?>\n${new XMLSerializer().serializeToString(svg)}\n`;
}
