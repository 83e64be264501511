// What a painted mask gives away: its picture, painted anew for a sheet of one width, and its cells.

import { onPaper } from '../takeaway/canvas.js';
import { places } from '../takeaway/series.js';
import { layOut, paint } from './paint.js';

const SIDE = 480; // CSS pixels

export const picture = onPaper(SIDE, { layOut: (data, ...paper) => layOut({ ...data, height: SIDE }, ...paper), paint });

/** One matrix [query, key]: of a mask, whether the query may see the key. */
export function series({ n, queries, keys, words }, cells) {
  const dims = [
    { name: 'query', at: places(n, 1), tokens: queries },
    { name: 'key', at: places(n, 1), tokens: keys },
  ];
  return [{ name: words.name, dims, values: { name: words.value, dtype: '|b1', data: cells }, extra: [] }];
}
