// What a question and its answer give away: the picture, painted anew for a sheet of one width, and their tokens.

import { onPaper } from '../takeaway/canvas.js';
import { places } from '../takeaway/series.js';
import { layOut } from './layout.js';
import { mark, paint } from './paint.js';

export const picture = onPaper(1000, { layOut, paint, mark });

/** Two rows of texts; beside the answer's its verdicts and what is right. */
export function series({ question, said }) {
  const row = (name, data, extra = []) => ({
    name,
    dims: [{ name: 'position', at: places(data.length, 1), tokens: null }],
    values: { name: 'text', dtype: '<U', data },
    extra: extra.map(([called, column]) => ({ name: called, dtype: '<U', data: column })),
  });
  const column = (name) => said.map((each) => each[name]);
  return [row('in', question), row('out', column('text'), [['verdict', column('verdict')], ['answer', column('truth')]])];
}
