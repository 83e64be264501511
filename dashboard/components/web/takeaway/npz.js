// NumPy's .npz: a ZIP archive of .npy files (numpy.lib.format, version 1.0), stored without compression.

import { crc32 } from './crc32.js';

const SIZES = { '|b1': 1, '|u1': 1, '|i1': 1, '<u2': 2, '<i2': 2, '<u4': 4, '<i4': 4, '<f4': 4, '<f8': 8 };
const TYPED = {
  '|b1': Uint8Array, '|u1': Uint8Array, '|i1': Int8Array, '<u2': Uint16Array, '<i2': Int16Array,
  '<u4': Uint32Array, '<i4': Int32Array, '<f4': Float32Array, '<f8': Float64Array,
};
const DAY = (1 << 5) | 1; // ZIP's first day, 1980-01-01: the same numbers always give the same file

/** The file's bytes; `arrays` is {name: {dtype, shape, data}}, texts having the dtype '<U'. */
export function npz(arrays) {
  const parts = [];
  const directory = [];
  let offset = 0;
  for (const [name, array] of Object.entries(arrays)) {
    const file = npy(array);
    const path = new TextEncoder().encode(`${name}.npy`);
    const common = [
      [2, 20], [2, 0], [2, 0], [2, 0], [2, DAY], // version, flags, stored, time, date
      [4, crc32(file)], [4, file.length], [4, file.length], [2, path.length], [2, 0],
    ];
    const local = record([[4, 0x04034b50], ...common]);
    parts.push(local, path, file);
    directory.push(record([[4, 0x02014b50], [2, 20], ...common, [2, 0], [2, 0], [2, 0], [4, 0], [4, offset]]), path);
    offset += local.length + path.length + file.length;
  }
  const size = directory.reduce((sum, part) => sum + part.length, 0);
  const count = directory.length / 2;
  const end = record([[4, 0x06054b50], [2, 0], [2, 0], [2, count], [2, count], [4, size], [4, offset], [2, 0]]);
  return joined([...parts, ...directory, end]);
}

/** Little-endian fields, each [bytes, value]. */
function record(fields) {
  const made = new Uint8Array(fields.reduce((sum, [bytes]) => sum + bytes, 0));
  const view = new DataView(made.buffer);
  let at = 0;
  for (const [bytes, value] of fields) {
    if (bytes === 2) view.setUint16(at, value, true);
    else view.setUint32(at, value, true);
    at += bytes;
  }
  return made;
}

function npy({ dtype, shape, data }) {
  const text = dtype === '<U';
  const wide = text ? Math.max(1, ...data.map((each) => [...each].length)) : 0;
  const body = text ? utf32(data, wide) : new Uint8Array(TYPED[dtype].from(data).buffer);
  const tuple = shape.length === 1 ? `(${shape[0]},)` : `(${shape.join(', ')})`;
  const said = `{'descr': '${text ? `<U${wide}` : dtype}', 'fortran_order': False, 'shape': ${tuple}, }`;
  const length = Math.ceil((10 + said.length + 1) / 64) * 64 - 10;
  const head = new TextEncoder().encode(`${said.padEnd(length - 1)}\n`);
  const magic = Uint8Array.from([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0, head.length & 255, head.length >> 8]);
  return joined([magic, head, body]);
}

/** Texts as NumPy keeps them: four bytes a character, shorter ones filled up with zeros. */
function utf32(texts, wide) {
  const view = new DataView(new ArrayBuffer(4 * wide * texts.length));
  texts.forEach((text, row) => [...text].forEach((c, i) => view.setUint32(4 * (row * wide + i), c.codePointAt(0), true)));
  return new Uint8Array(view.buffer);
}

function joined(parts) {
  const made = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    made.set(part, at);
    at += part.length;
  }
  return made;
}

/** The bytes of base64 text as an array of one of the dtypes above. */
export function decoded(text, dtype) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  return typed(bytes, dtype, 0, bytes.length / SIZES[dtype]);
}

/** `count` numbers of one of the dtypes above, which begin `offset` bytes from the first. */
export function typed(bytes, dtype, offset, count) {
  const part = bytes.slice(offset, offset + count * SIZES[dtype]); // a copy, for numbers of 8 bytes begin at a multiple of 8
  return new TYPED[dtype](part.buffer);
}
