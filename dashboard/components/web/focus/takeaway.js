// What the head in focus gives away: its pictures, painted anew for a sheet of one width, and its numbers.

import { onPaper } from '../takeaway/canvas.js';
import { places } from '../takeaway/series.js';
import { layOut } from './layout.js';
import { mark, paint } from './paint.js';

/** No wider than its pictures. */
function cropped(data, width, ratio, measure) {
  const layout = layOut(data, width, ratio, measure);
  return { ...layout, width: Math.max(...layout.boxes.map(({ x, width, wide = 0 }) => x + width + wide)) + 8 * ratio };
}

export const picture = onPaper(760, { layOut: cropped, paint, mark });

/** What must be known of its numbers. */
export function note({ first, rows, columns, queries, keys, whole }) {
  const window = `queries ${first[0] + 1} to ${first[0] + rows} of ${queries.length}, keys ${first[1] + 1} to ${first[1] + columns} of ${keys.length}`;
  return rows < queries.length || columns < keys.length
    ? `Exact for a window: ${window}.${whole ? ` The whole is in steps of 1/255, downsampled ${whole.factor}×.` : ''}`
    : '';
}

/** One matrix a view, [query, key], with its mask; of a long input the downsampled whole as well. */
export function series(data) {
  const { first, rows, columns, queries, keys, mask, whole } = data;
  const dims = [
    { name: 'query', at: places(rows, first[0] + 1), tokens: queries.slice(first[0], first[0] + rows) },
    { name: 'key', at: places(columns, first[1] + 1), tokens: keys.slice(first[1], first[1] + columns) },
  ];
  const extra = mask ? [{ name: 'mask', dtype: '|b1', data: mask }] : [];
  const made = data.views.map(({ name, values }) => ({ name, dims, values: { name: 'value', dtype: '<f4', data: values }, extra }));
  if (whole) {
    const at = (count, name) => ({ name, at: places(count, 1, whole.factor), tokens: null });
    made.push({
      name: 'whole',
      dims: [at(whole.rows, 'query'), at(whole.columns, 'key')],
      values: { name: 'value', dtype: '<f4', data: Float32Array.from(whole.values, (level) => level / 255) },
      extra: [{ name: 'mask', dtype: '|b1', data: whole.mask }],
    });
  }
  return made;
}
