// Bytes as text and back. Uint8Array.toBase64 would do the same, but browsers of before 2025 do not know it.

export function toBase64(bytes) {
  let text = '';
  for (let i = 0; i < bytes.length; i += 4096) text += String.fromCharCode(...bytes.subarray(i, i + 4096)); // a call takes so many
  return btoa(text);
}

export const fromBase64 = (text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
