// Streamlit's theme, as its style sheet says it.

/** The colours and font of Streamlit's theme, whether it is dark, and a key that tells one theme from another. */
export function readTheme(element) {
  const style = getComputedStyle(element);
  const read = (name, otherwise) => style.getPropertyValue(`--st-${name}`).trim() || otherwise;
  const theme = {
    text: read('text-color', '#31333f'),
    border: read('border-color', '#8888'),
    primary: read('primary-color', '#ff4b4b'),
    background: read('background-color', '#ffffff'),
    font: read('font', 'sans-serif'),
  };
  return { ...theme, dark: luminance(rgb(theme.background)) < 0.2, key: Object.values(theme).join('|') };
}

const known = new Map(); // colour -> its numbers

/** A colour, whatever CSS calls it, as three numbers from 0 to 255. */
export function rgb(colour) {
  if (!known.has(colour)) {
    const context = document.createElement('canvas').getContext('2d');
    context.fillStyle = '#ffffff';
    context.fillStyle = colour; // read back as #rrggbb; a colour that is none leaves white
    const value = parseInt(context.fillStyle.slice(1, 7), 16);
    known.set(colour, [value >> 16, (value >> 8) & 255, value & 255]);
  }
  return known.get(colour);
}

/** How much light comes from [r, g, b], from 0 to 1 (WCAG 2.2, "relative luminance"). */
export function luminance([r, g, b]) {
  const linear = (value) => (value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4);
  return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
}
