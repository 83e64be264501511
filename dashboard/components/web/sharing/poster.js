// The address of a room over the whole screen, as a QR code and in letters that are read from the last row. Any key or
// click takes it away.

import { element } from '../prediction/element.js';

const WIDE = 0.6; // of a letter's height: its width in the widest usual font
const [ACROSS, HIGH] = [92, 11]; // of the screen, per cent: what the address may take

let shown = null; // {place, before, over}

/** Show a room: {code, address, path}. */
export function showPoster({ code, address = '', path }) {
  hidePoster();
  const letters = address.replace(/^https?:\/\//, '');
  const place = element(
    'div',
    { className: 'al-poster', role: 'dialog', 'aria-label': `Room ${code}: ${address}`, tabIndex: -1 },
    element('img', { src: `${path}/qr.svg`, alt: 'The address of the room as a QR code' }),
    element('p', { textContent: letters, 'data-part': 'address' }),
    element('p', { textContent: `Room ${code}`, 'data-part': 'code' })
  );
  place.style.cssText =
    'position:fixed;inset:0;z-index:999998;display:flex;flex-direction:column;align-items:center;justify-content:center;gap:2vh;' +
    'box-sizing:border-box;padding:2vh 2vw;background:#ffffff;color:#000000;cursor:pointer;font-family:var(--st-font,sans-serif);line-height:1.1;outline:none';
  const [picture, link, name] = place.children;
  picture.style.cssText = 'height:60vh;max-width:92vw;object-fit:contain';
  for (const each of [link, name]) each.style.cssText = 'margin:0;font-weight:700;white-space:nowrap';
  for (const each of [link, name]) {
    each.style.fontSize = `min(${HIGH}vh, ${(ACROSS / (WIDE * Math.max(each.textContent.length, 1))).toFixed(2)}vw)`;
  }
  const over = new AbortController();
  const end = (event) => {
    event.preventDefault();
    event.stopImmediatePropagation();
    hidePoster();
  };
  for (const by of ['keydown', 'click']) window.addEventListener(by, end, { capture: true, signal: over.signal });
  shown = { place, over, before: document.activeElement };
  document.body.append(place);
  place.focus();
}

/** Take it away. Returns whether it was there. */
export function hidePoster() {
  if (!shown) return false;
  const { place, over, before } = shown;
  shown = null;
  over.abort();
  place.remove();
  before?.focus?.();
  return true;
}
