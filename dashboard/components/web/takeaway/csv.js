// Comma-separated values (RFC 4180) after lines of comment: pandas.read_csv(file, comment='#', keep_default_na=…) reads it.
//
// By hand: a library would write the quotes, but not the shortest text of a float32 nor the lines of comment.

/** `table` is {header, rows} of series.js; each entry of `head` becomes a line "# name: value". */
export function csv({ header, rows }, head) {
  const comments = Object.entries(head).map(([name, value]) => `# ${name}: ${String(value).replace(/[\r\n]+/g, ' ')}`);
  const lines = rows.map((row) => row.map((cell) => (cell === null ? '' : written(cell))).join(','));
  return [...comments, header.map(quoted).join(','), ...lines, ''].join('\n');
}

function written({ dtype, value }) {
  if (dtype.startsWith('<U')) return quoted(value);
  if (dtype === '|b1') return value ? 'True' : 'False';
  if (Number.isNaN(value)) return '';
  if (!Number.isFinite(value)) return value > 0 ? 'inf' : '-inf';
  return dtype === '<f4' ? single(value) : String(value);
}

// Every text is quoted: a token may be a number, and "#" would begin a comment… even within quotes, for pandas.
const quoted = (text) => `"${String(text).replaceAll('"', '""')}"`;

/** The shortest decimal that is this float32 and no other. */
function single(value) {
  for (let digits = 1; digits < 9; digits++) {
    const text = value.toPrecision(digits);
    if (Math.fround(text) === value) return String(Number(text));
  }
  return String(Number(value.toPrecision(9)));
}
