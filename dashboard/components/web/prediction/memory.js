// What was predicted in this browser, by the question's id.

import { Memory } from '../kit/memory.js';

export const predictions = new Memory('attention-lab-predictions');
