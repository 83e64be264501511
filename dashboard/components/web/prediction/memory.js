// What was predicted in this browser, by the question's id, and which of these predictions a room has counted.

import { Memory } from '../kit/memory.js';

export const predictions = new Memory('attention-lab-predictions');
export const sent = new Memory('attention-lab-sent');
export const starts = new Memory('attention-lab-starts'); // at which start of its lecture a question was asked last

/** A question in the room at this page's address. */
export const here = (question) => `${location.pathname} ${question}`;
