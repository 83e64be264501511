// What a passage gives away: its picture, painted anew for a sheet of one width, and its numbers.

import { onPaper } from '../takeaway/canvas.js';
import { places } from '../takeaway/series.js';
import { layOut } from './layout.js';
import { mark, paint } from './paint.js';

export const picture = onPaper(760, { layOut, paint, mark });

/** The words; beside each its value and the weight of its arc, where there are any. */
export function series({ name, tokens, ground, arcs }) {
  const dims = [{ name: 'position', at: places(tokens.length, 1), tokens }];
  const column = (called, data) => ({ name: called, dtype: '<f4', data });
  const made = [];
  if (ground) made.push({ name: ground.title, dims, values: column('value', ground.values), extra: [] });
  if (arcs) made.push({ name: 'arcs', dims, values: column('value', arcs), extra: [] });
  return made.length ? made : [{ name, dims, values: { name: 'text', dtype: '<U', data: tokens }, extra: [] }];
}
