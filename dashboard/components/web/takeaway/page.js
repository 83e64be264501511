// A figure as one HTML file that needs no server and no network, with its numbers and its origin.
//
// By hand: Plotly writes such a page in Python only, and not of what is painted on a canvas.

import { toBase64 } from '../kit/base64.js';

const STYLE = `
a { color: inherit; }
body { margin: 0; font: 400 17px/1.5 "Source Sans", "Helvetica Neue", Arial, sans-serif; }
main { max-width: 1100px; margin: 0 auto; padding: 1.5rem; }
h1 { margin: 0 0 1rem; font-size: 1.35rem; line-height: 1.3; }
.picture { overflow-x: auto; }
.picture > svg { display: block; max-width: 100%; height: auto; }
footer { margin-top: 1.5rem; font-size: 0.95rem; overflow-wrap: anywhere; }
footer p { margin: 0.25rem 0; }
`;
// The file's own policy forbids it every request.
const POLICY =
  "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'";

/**
 * `markup` and `scripts` show the figure, on the colours of the `theme` it was drawn for; `credits` are its weights in
 * words; `files` holds its numbers, {csv, npz}, as bytes; `stem` names them.
 */
export function page({ markup, scripts, theme, origin, credits, files, stem }) {
  const title = escaped(origin.title);
  const colours = `body { color: ${theme.text}; background: ${theme.background}; }`;
  const link = escaped(origin.link);
  return [
    '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n',
    `<meta http-equiv="Content-Security-Policy" content="${POLICY}">\n`,
    '<meta name="viewport" content="width=device-width, initial-scale=1">\n<link rel="icon" href="data:,">\n',
    `<title>${title}</title>\n<style>${STYLE}${colours}</style>\n</head>\n<body>\n<main>\n<h1>${title}</h1>\n`,
    `<div class="picture">${markup}</div>\n<footer>\n`,
    `<p>The numbers: ${download(files.npz, 'application/zip', `${stem}.npz`, 'NPZ')}, `,
    `${download(files.csv, 'text/csv', `${stem}.csv`, 'CSV')}</p>\n`,
    link && `<p>The view it was made in: <a class="origin" href="${link}">${link}</a></p>\n`,
    ...credits.map((credit) => `<p class="weights">Weights ${escaped(credit)}</p>\n`),
    origin.note ? `<p>${escaped(origin.note)}</p>\n` : '',
    `<p>Made ${origin.made.slice(0, 16).replace('T', ' ')} UTC with ${escaped(origin.software)}.</p>\n`,
    `</footer>\n</main>\n<script type="application/json" id="origin">${json(origin)}</script>\n`,
    ...scripts.map((script) => `<script>${script}</script>\n`),
    '</body>\n</html>\n',
  ].join('');
}

function download(bytes, type, name, words) {
  return `<a class="numbers" download="${escaped(name)}" href="data:${type};base64,${toBase64(bytes)}">${words}</a>`;
}

/** A text as markup may hold it, between tags or in quotes. */
export function escaped(text) {
  return String(text).replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}

/** JSON that may stand within a script: "</script>" in a token would end it. */
export function json(value) {
  return JSON.stringify(value).replaceAll('<', '\\u003c');
}
