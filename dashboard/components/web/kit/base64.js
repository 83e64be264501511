// Bytes as text and back. Uint8Array.toBase64 would do the same, but browsers of before 2025 do not know it.

export function toBase64(bytes) {
  let text = '';
  for (let i = 0; i < bytes.length; i += 4096) text += String.fromCharCode(...bytes.subarray(i, i + 4096)); // a call takes so many
  return btoa(text);
}

export function fromBase64(text) {
  const characters = atob(text);
  const bytes = new Uint8Array(characters.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = characters.charCodeAt(i); // a file of all heads has megabytes
  return bytes;
}
