// What the grid of heads gives away: its picture, painted anew for a wide sheet, and its patterns as Python sent them.

import { layOut } from '../matrix/layout.js';
import { mark, paint } from '../matrix/paint.js';
import { onPaper } from '../takeaway/canvas.js';
import { places } from '../takeaway/series.js';

export const picture = onPaper(1100, { layOut, paint, mark });

/** What must be known of its numbers. */
export function note({ exact, panels }) {
  const factor = Math.max(...panels.map((panel) => panel.factor ?? 1));
  return [
    exact ? '' : 'The grid holds its patterns in steps of 1/255.',
    factor > 1 ? `They are downsampled ${factor}×: each cell is the strongest of ${factor} × ${factor}, named by its first.` : '',
  ].join(' ').trim();
}

/** One matrix a head, with its mask, [query, key]. Coarse patterns, sent as whole steps of 1/255, are shares here too. */
export function series(data) {
  return data.panels.map((panel) => {
    const { rows, columns, queries, keys, values, mask, factor = 1 } = panel;
    const shares = values instanceof Float32Array ? values : Float32Array.from(values, (level) => level / 255);
    const extra = mask ? [{ name: 'mask', dtype: '|b1', data: mask }] : [];
    return {
      name: `${panel.group} head ${panel.name}`.trim(),
      dims: [
        { name: 'query', at: places(rows, 1, factor), tokens: queries },
        { name: 'key', at: places(columns, 1, factor), tokens: keys },
      ],
      values: { name: 'value', dtype: '<f4', data: shares },
      extra,
    };
  });
}
