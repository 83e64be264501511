// Boxes and lines of text as CSS styles them, painted on a canvas' context or on one of vectors (takeaway/svg_context.js).
//
// `box` is {x, y, width, height} in device pixels, `ratio` of them a CSS pixel; `style` is what getComputedStyle says.

const SIDES = ['Top', 'Right', 'Bottom', 'Left'];
const seen = (colour) => !/^rgba\(.*, 0\)$/.test(colour);
const whole = ({ x, y, width, height }) => {
  const [left, top] = [Math.round(x), Math.round(y)];
  return [left, top, Math.round(x + width) - left, Math.round(y + height) - top]; // seams between cells would shine
};

/** The ground of a box: a colour, and bands of colours on it. */
export function fill(context, box, style, ratio) {
  if (seen(style.backgroundColor)) {
    context.fillStyle = style.backgroundColor;
    const radius = parseFloat(style.borderTopLeftRadius) * ratio;
    if (radius) {
      outline(context, box, radius);
      context.fill();
    } else {
      context.fillRect(...whole(box));
    }
  }
  if (style.backgroundImage !== 'none') bands(context, box, style.backgroundImage, ratio);
}

/** The bands of a hard-edged gradient, upright ones from left to right or hatching from corner to corner; we draw no other. */
function bands(context, box, image, ratio) {
  const [, repeating, angle] = /^(repeating-)?linear-gradient\((\d+)deg/.exec(image);
  const stops = [...image.matchAll(/(rgba?\([^)]*\)) ([\d.]+)(px|%)(?: ([\d.]+)(?:px|%))?/g)];
  let end = 0;
  const found = [];
  for (const [, colour, one, unit, other] of stops) {
    const to = Number(other ?? one) * (unit === '%' ? box.width / 100 : ratio);
    if (found.at(-1)?.colour === colour) found.at(-1).to = to;
    else found.push({ colour, from: end, to });
    end = Math.max(end, to);
  }
  if (!repeating && angle === '90') return upright(context, box, found);
  if (repeating && angle === '135' && found.length === 2) return hatching(context, box, ...found);
  throw new Error(`no picture can be made of ${image}`);
}

function upright(context, box, found) {
  for (const { colour, from, to } of found) {
    context.fillStyle = colour;
    context.fillRect(...whole({ ...box, x: box.x + from, width: to - from }));
  }
}

function hatching(context, box, ground, line) {
  const { x, y, width, height } = box;
  context.fillStyle = ground.colour;
  context.fillRect(...whole(box));
  context.strokeStyle = line.colour;
  context.lineWidth = line.to - line.from;
  context.beginPath();
  for (let at = (line.from + line.to) / 2; at * Math.SQRT2 < width + height; at += line.to) {
    const sum = at * Math.SQRT2; // of the ways across and down at which this line meets the edges
    const [across, down] = [Math.min(sum, width), Math.min(sum, height)];
    context.moveTo(x + across, y + sum - across);
    context.lineTo(x + sum - down, y + down);
  }
  context.stroke();
}

/** The border of a box: all around, or lines along some of its sides. */
export function frame(context, box, style, ratio) {
  const sides = SIDES.map((side) => ({
    side,
    width: parseFloat(style[`border${side}Width`]) * ratio,
    kind: style[`border${side}Style`],
    colour: style[`border${side}Color`],
  }));
  const drawn = sides.filter(({ width, kind, colour }) => width > 0 && kind !== 'none' && seen(colour));
  const [{ width, kind, colour }] = sides;
  if (drawn.length === 4 && sides.every((each) => each.width === width && each.kind === kind && each.colour === colour)) {
    around(context, box, { width, kind, colour, radius: parseFloat(style.borderTopLeftRadius) * ratio });
  } else {
    for (const each of drawn) along(context, box, each);
  }
}

/** The outline of a box, which lies over what is in it and beside it. */
export function hem(context, { x, y, width, height }, style, ratio) {
  const line = { width: parseFloat(style.outlineWidth) * ratio, kind: style.outlineStyle, colour: style.outlineColor, radius: 0 };
  if (line.kind === 'none' || !line.width) return;
  const out = parseFloat(style.outlineOffset) * ratio + line.width;
  around(context, { x: x - out, y: y - out, width: width + 2 * out, height: height + 2 * out }, line);
}

/** A line `width` wide within the edges of a box; a double one is two thirds ink. */
function around(context, { x, y, width: wide, height: high }, { width, kind, colour, radius }) {
  context.strokeStyle = colour;
  context.lineWidth = kind === 'double' ? width / 3 : width;
  context.setLineDash(kind === 'dashed' ? [2.5 * width, 1.5 * width] : []);
  const half = context.lineWidth / 2;
  for (const at of kind === 'double' ? [half, width - half] : [half]) {
    outline(context, { x: x + at, y: y + at, width: wide - 2 * at, height: high - 2 * at }, Math.max(0, radius - at));
    context.stroke();
  }
  context.setLineDash([]);
}

function along(context, { x, y, width: wide, height: high }, { side, width, colour }) {
  context.fillStyle = colour;
  const upright = side === 'Left' || side === 'Right';
  const [left, top] = [side === 'Right' ? x + wide - width : x, side === 'Bottom' ? y + high - width : y];
  context.fillRect(...whole({ x: left, y: top, width: upright ? width : wide, height: upright ? high : width }));
}

function outline(context, { x, y, width, height }, radius) {
  context.beginPath();
  context.roundRect(x, y, width, height, radius);
}

/** A line of text, anchored where CSS aligns it: in another font it keeps its place. */
export function letters(context, { x, y, width }, style, ratio, text) {
  context.font = `${style.fontWeight} ${parseFloat(style.fontSize) * ratio}px ${style.fontFamily}`;
  context.fillStyle = style.color;
  const align = { center: 'center', right: 'right', end: 'right' }[style.textAlign] ?? 'left';
  context.textAlign = align;
  context.textBaseline = 'alphabetic';
  const ascent = context.measureText('x').fontBoundingBoxAscent; // the box of a line is as high as its font
  context.fillText(text, x + { left: 0, center: width / 2, right: width }[align], y + ascent);
}
