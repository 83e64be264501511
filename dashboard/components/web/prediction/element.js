// Elements, made in a line.

const SVG = 'http://www.w3.org/2000/svg';

/** An element of HTML: what it has by name, among it aria-… and data-…, and what stands in it. */
export function element(name, has = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(has)) {
    if (key in made) made[key] = value;
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

/** An element of SVG with its attributes. */
export function drawn(name, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}
