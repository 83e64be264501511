// Where the tokens of a question and its answer stand, and the arcs between them.

const BOX = 62; // CSS pixels a token is wide, at most
const LEAST = 34; // and at least, in one row; in two it may be narrower
const GAP = 0.12; // of a box, between two
const APART = 0.45; // between question, separator and answer
const HIGH = 88; // above a row of boxes, for its arcs
const ACROSS = 76; // between two rows
const LABEL = 26; // below boxes, for what they are
const EDGE = 3; // around it all
const HALL = 1300; // from this width on it grows with the screen

/**
 * The boxes {x, y, size, kind, index}, `kind` being question, free (to be typed), separator or answer; a token's number
 * counts over question, separator and answers, as `looks.places` do. In device pixels.
 */
export function layOut(data, width, ratio) {
  const grown = Math.max(1, Math.min(1.6, width / HALL));
  const free = data.typing && data.typing.longest <= 12 ? Math.max(0, data.typing.longest - data.question.length) : 0;
  const [asked, answers] = [data.question.length + free, data.said.length];
  // While a short question is typed over a long one nothing moves: there is room for the longest answer.
  const room = free ? Math.max(answers, Math.min(data.typing.longest, asked)) : answers;
  const units = (count) => count + GAP * Math.max(0, count - 1);
  const whole = units(asked) + units(room) + 2 * APART + (data.separator ? 1 + 0 : 0);
  const single = data.separator !== '' && (width - 2 * EDGE) / whole >= LEAST;
  const widest = single ? whole : Math.max(units(asked) + (data.separator ? APART + 1 : 0), units(room));
  const size = Math.min(BOX * grown, (width - 2 * EDGE) / widest);
  const high = HIGH * Math.min(grown, 1.3) * (single ? Math.min(1, 0.35 + size / BOX) : 0);
  const over = !single && data.looks ? LABEL : 0; // lines leave the question below: what it is called stands above it
  const boxes = [];
  let x = EDGE;
  let y = EDGE + high + over;
  const row = (kind, count, first, marked = count) => {
    for (let i = 0; i < count; i++) {
      boxes.push({ x, y, size, kind: i < marked ? kind : 'free', index: first + i, token: i < marked ? first + i : null });
      x += size * (1 + GAP);
    }
    x += size * (APART - GAP);
  };
  row('question', asked, 0, data.question.length);
  const after = data.question.length;
  if (data.separator) row('separator', 1, after);
  if (!single) [x, y] = [EDGE, y + size + (data.looks ? ACROSS : 40)];
  row('answer', answers, after + (data.separator ? 1 : 0));
  const scaled = boxes.map((box) => ({ ...box, x: box.x * ratio, y: box.y * ratio, size: box.size * ratio }));
  const byToken = new Map(scaled.filter(({ token }) => token !== null).map((box) => [box.token, box]));
  return {
    width: Math.round(width * ratio),
    height: Math.round((y + size + LABEL + EDGE) * ratio),
    boxes: scaled,
    byToken,
    single,
    first: after + (data.separator ? 1 : 0), // the first answer's token
    label: LABEL * ratio,
    asked: { x: EDGE, y: EDGE + high + over, width: size * units(asked), size },
  };
}

/** The box at a point, or null. */
export const pick = (layout, x, y) =>
  layout.boxes.find((box) => x >= box.x && x <= box.x + box.size && y >= box.y && y <= box.y + box.size) ?? null;

/** An arc from one box to another, as the four points of a curve. */
export function arc(layout, from, to, ratio) {
  const [a, b] = [from, to].map(({ x, size }) => x + size / 2);
  if (layout.single) {
    const feet = from.y - 3 * ratio;
    const span = Math.abs(a - b) / layout.width;
    const height = (feet - 4 * ratio) * (0.32 + 1.02 * Math.min(1, span));
    return [[a, feet], [a, feet - height], [b, feet - height], [b, feet]];
  }
  const up = from.y > to.y ? from.y - 2 * ratio : from.y + from.size + 2 * ratio;
  const level = from.y === to.y;
  const down = level ? up : to.y < from.y ? to.y + to.size + 2 * ratio : to.y - 2 * ratio;
  const bend = level ? -18 * ratio : (down - up) * 0.5;
  return [[a, up], [a, up + bend], [b, down - (level ? -bend : bend)], [b, down]];
}

/** The point a share of the way along a curve. */
export function along([p, q, r, s], t) {
  const u = 1 - t;
  return [0, 1].map((i) => u ** 3 * p[i] + 3 * u * u * t * q[i] + 3 * u * t * t * r[i] + t ** 3 * s[i]);
}
