// What the glances give away: their picture, painted anew for a sheet of one width, and their weights.

import { onPaper } from '../takeaway/canvas.js';
import { places } from '../takeaway/series.js';
import { layOut, mark, paint } from './paint.js';

export const picture = onPaper(760, { layOut, paint, mark });

export const note = ({ tokens, query }) => `All of one query: '${tokens[query].replaceAll('\n', '↵')}' at ${query + 1}.`;

/** One matrix, [head, key]. */
export function series({ heads, tokens, weights }) {
  const dims = [
    { name: 'head', at: places(heads.length), tokens: heads.map((head) => head.join('.')) },
    { name: 'key', at: places(tokens.length, 1), tokens },
  ];
  return [{ name: 'pattern', dims, values: { name: 'value', dtype: '<f4', data: weights }, extra: [] }];
}
