// NumPy's .npz: a ZIP archive of .npy files (numpy.lib.format, version 1.0), stored without compression.
//
// By hand: no browser writes ZIP, and a library for it (fflate, JSZip) is many times as long as these lines.

import { fromBase64 } from '../kit/base64.js';
import { crc32 } from './crc32.js';

const TYPED = {
  '|b1': Uint8Array, '|u1': Uint8Array, '|i1': Int8Array, '<u2': Uint16Array, '<i2': Int16Array,
  '<u4': Uint32Array, '<i4': Int32Array, '<f4': Float32Array, '<f8': Float64Array,
};
const DAY = (1 << 5) | 1; // ZIP's first day, 1980-01-01: the same numbers always give the same file

/** The file; `arrays` is {name: {dtype, shape, data}}, texts having the dtype '<U'. */
export function npz(arrays) {
  const files = [];
  const directory = [];
  let offset = 0;
  for (const [name, array] of Object.entries(arrays)) {
    const file = npy(array);
    const path = new TextEncoder().encode(`${name}.npy`);
    const common = [
      u16(20, 0, 0, 0, DAY), // version, flags, stored, time, date
      u32(crc32(file), file.length, file.length),
      u16(path.length, 0),
    ];
    files.push(new Blob([u32(0x04034b50), ...common, path, file]));
    directory.push(u32(0x02014b50), u16(20), ...common, u16(0, 0, 0), u32(0, offset), path);
    offset += files.at(-1).size;
  }
  const listed = new Blob(directory);
  const end = [u32(0x06054b50), u16(0, 0, files.length, files.length), u32(listed.size, offset), u16(0)];
  return new Blob([...files, listed, ...end]);
}

// In the order of bytes of the machine, which is ZIP's and the arrays' own wherever there is a browser.
const u16 = (...values) => Uint16Array.from(values);
const u32 = (...values) => Uint32Array.from(values);

function npy({ dtype, shape, data }) {
  const text = dtype === '<U';
  const wide = text ? Math.max(1, ...data.map((each) => [...each].length)) : 0;
  const body = text ? utf32(data, wide) : new Uint8Array(TYPED[dtype].from(data).buffer);
  const tuple = shape.length === 1 ? `(${shape[0]},)` : `(${shape.join(', ')})`;
  const said = `{'descr': '${text ? `<U${wide}` : dtype}', 'fortran_order': False, 'shape': ${tuple}, }`;
  const length = Math.ceil((10 + said.length + 1) / 64) * 64 - 10;
  const made = new Uint8Array(10 + length + body.length);
  made.set([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0, length & 255, length >> 8]); // "\x93NUMPY", version 1.0
  made.set(new TextEncoder().encode(`${said.padEnd(length - 1)}\n`), 10);
  made.set(body, 10 + length);
  return made;
}

/** Texts as NumPy keeps them: four bytes a character, shorter ones filled up with zeros. */
function utf32(texts, wide) {
  const view = new DataView(new ArrayBuffer(4 * wide * texts.length));
  texts.forEach((text, row) => [...text].forEach((c, i) => view.setUint32(4 * (row * wide + i), c.codePointAt(0), true)));
  return new Uint8Array(view.buffer);
}

/** The bytes of base64 text as an array of one of the dtypes above. */
export const decoded = (text, dtype) => new TYPED[dtype](fromBase64(text).buffer);

/** `count` numbers of one of the dtypes above, which begin `offset` bytes from the first. */
export function typed(bytes, dtype, offset, count) {
  const part = bytes.slice(offset, offset + count * TYPED[dtype].BYTES_PER_ELEMENT); // a copy: it begins at a multiple of 8
  return new TYPED[dtype](part.buffer);
}
