// Texts in a PNG file: iTXt chunks (ISO/IEC 15948, 11.3.4.5), UTF-8 and uncompressed.
//
// By hand: no canvas writes texts into the PNG that it makes, nor does Plotly.

import { crc32 } from './crc32.js';

const HEAD = 33; // the signature, 8 bytes, and IHDR, 25, which has to come first

/** The PNG file (an ArrayBuffer) with a chunk for each entry of `texts`, {keyword: text}. */
export function annotate(file, texts) {
  const chunks = Object.entries(texts).map(([keyword, text]) => chunk('iTXt', `${keyword}\0\0\0\0\0${text}`));
  return new Blob([file.slice(0, HEAD), ...chunks, file.slice(HEAD)]);
}

function chunk(type, text) {
  const body = new TextEncoder().encode(type + text);
  const made = new Uint8Array(8 + body.length);
  const view = new DataView(made.buffer);
  view.setUint32(0, body.length - 4);
  made.set(body, 4);
  view.setUint32(4 + body.length, crc32(body));
  return made;
}
