// What one can be asked for, by the name that Python gives it (dashboard/lectures/questions.py).

import { Bars } from './bars.js';
import { Cells } from './cells.js';
import { Amount, Choice, Words } from './fields.js';

export const KINDS = { choice: Choice, number: Amount, bars: Bars, cells: Cells, words: Words };
