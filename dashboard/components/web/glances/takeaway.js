// What the glances give away: their picture, painted anew for a sheet of one width, and their weights.

import { RATIO, measuring } from '../takeaway/canvas.js';
import { places } from '../takeaway/series.js';
import { layOut, mark, paint } from './paint.js';

export { body, png, svg } from '../takeaway/canvas.js';

const WIDTH = 760; // CSS pixels there are for it, whatever the window

export const picture = (data, theme, chosen) => (over) => {
  const layout = layOut(data, WIDTH, RATIO, measuring(theme.font));
  const sheets = [over(layout.width, layout.height), over(layout.width, layout.height)];
  paint(sheets[0], data, layout, theme, RATIO);
  mark(sheets[1], data, layout, theme, RATIO, null, chosen);
  return { sheets, ...layout };
};

export const note = ({ tokens, query }) => `All of one query: '${tokens[query].replaceAll('\n', '↵')}' at ${query + 1}.`;

/** One matrix, [head, key]. */
export function series({ heads, tokens, weights }) {
  const dims = [
    { name: 'head', at: places(heads.length), tokens: heads.map((head) => head.join('.')) },
    { name: 'key', at: places(tokens.length, 1), tokens },
  ];
  return [{ name: 'pattern', dims, values: { name: 'value', dtype: '<f4', data: weights }, extra: [] }];
}
