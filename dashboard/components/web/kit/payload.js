// The messages of dashboard/components/payload.py: u32 header length | JSON header | padding to 4 | body.

/** The header (an object) and body (bytes at an address that is a multiple of four) of a message. */
export function unpack(message) {
  const length = new DataView(message.buffer, message.byteOffset).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(message.subarray(4, 4 + length)));
  const start = (4 + length + 3) & ~3;
  return { header, body: message.subarray(start) };
}

/** The message of a header without a body. */
export function pack(header) {
  const text = new TextEncoder().encode(JSON.stringify(header));
  const message = new Uint8Array(4 + ((text.length + 3) & ~3));
  new DataView(message.buffer).setUint32(0, text.length, true);
  message.set(text, 4);
  return message;
}

/** Whether two messages hold the same bytes; a rerun that changed nothing sends the same ones again. */
export function same(one, other) {
  if (!one || !other || one.length !== other.length) return false;
  for (let i = 0; i < one.length; i++) if (one[i] !== other[i]) return false;
  return true;
}
