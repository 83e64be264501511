// How wide a text is, and canvases as large as their picture.

/** The width of a text, as layouts ask for it: `measure(text, size)`, in CSS pixels where the size is in them. */
export function measuring(font) {
  const context = document.createElement('canvas').getContext('2d');
  return (text, size) => {
    context.font = `${size}px ${font}`;
    return context.measureText(text).width;
  };
}

/** Give canvases a size in device pixels, `ratio` of them a CSS pixel; to set the size that one has would wipe it. */
export function resize(canvases, width, height, ratio) {
  for (const canvas of canvases) {
    if (canvas.width !== width) canvas.width = width;
    if (canvas.height !== height) canvas.height = height;
    canvas.style.width = `${width / ratio}px`;
    canvas.style.height = `${height / ratio}px`;
  }
}
