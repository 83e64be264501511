// What a painted mask gives away: its picture, painted anew for a sheet of one width, and its cells.

import { RATIO, measuring } from '../takeaway/canvas.js';
import { places } from '../takeaway/series.js';
import { layOut, paint } from './paint.js';

export { body, png, svg } from '../takeaway/canvas.js';

const SIDE = 480; // CSS pixels there are for it, whatever the window

export const picture = (data, theme, cells) => (over) => {
  const layout = layOut({ ...data, height: SIDE }, SIDE, RATIO, measuring(theme.font));
  const sheets = [over(layout.width, layout.height), over(layout.width, layout.height)];
  paint(sheets[0], data, cells, layout, theme, RATIO);
  return { sheets, ...layout };
};

export const note = () => '';

/** One matrix [query, key]: of a mask, whether the query may see the key. */
export function series({ n, queries, keys, words }, cells) {
  const dims = [
    { name: 'query', at: places(n, 1), tokens: queries },
    { name: 'key', at: places(n, 1), tokens: keys },
  ];
  return [{ name: words.name, dims, values: { name: words.value, dtype: '|b1', data: cells }, extra: [] }];
}
