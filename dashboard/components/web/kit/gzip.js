// Texts and bytes made small, and back, as gzip does it: the browser's own.

import { fromBase64 } from './base64.js';

/** A text, compressed: bytes. */
export const compressed = (text) => through(new CompressionStream('gzip'), text);

/** Compressed bytes as they were. */
export const inflated = (bytes) => through(new DecompressionStream('gzip'), bytes);

/** What was compressed and written in base64, as bytes. */
export const unpacked = (packed) => inflated(fromBase64(packed));

/** What was compressed and written in base64, as a text. */
export const unpackedText = async (packed) => new TextDecoder().decode(await unpacked(packed));

async function through(stream, content) {
  return new Uint8Array(await new Response(new Blob([content]).stream().pipeThrough(stream)).arrayBuffer());
}
