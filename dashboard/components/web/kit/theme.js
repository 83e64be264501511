// Streamlit's theme, as its style sheet says it.

/** The colours and font of Streamlit's theme, whether it is dark, and a key that tells one theme from another. */
export function readTheme(element) {
  const style = getComputedStyle(element);
  const read = (name, otherwise) => style.getPropertyValue(`--st-${name}`).trim() || otherwise;
  const theme = {
    text: read('text-color', '#31333f'),
    border: read('border-color', '#8888'),
    primary: read('primary-color', '#ff4b4b'),
    onPrimary: read('background-color', '#ffffff'),
    font: read('font', 'sans-serif'),
  };
  return { ...theme, dark: lightness(theme.onPrimary) < 0.5, key: Object.values(theme).join('|') };
}

/** How light a colour is, from 0 to 1, whatever CSS calls it. */
function lightness(colour) {
  const context = document.createElement('canvas').getContext('2d');
  context.fillStyle = '#ffffff';
  context.fillStyle = colour; // read back as #rrggbb; a colour that is none leaves white
  const value = parseInt(context.fillStyle.slice(1, 7), 16);
  return (0.3 * (value >> 16) + 0.6 * ((value >> 8) & 255) + 0.1 * (value & 255)) / 255;
}
