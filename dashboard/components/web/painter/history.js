// Undo and redo: they outlive reruns and pages, for as long as the browser's page does.

const KEPT = 200; // strokes
const histories = new Map();

/** The history of the masks painted at one place and of one size; masks are texts (see pack in mask.js). */
export function historyOf(name) {
  if (!histories.has(name)) histories.set(name, new History());
  return histories.get(name);
}

class History {
  constructor() {
    this.past = [];
    this.future = [];
    this.now = null;
  }

  /** Another mask stands there now, for whatever reason. */
  go(text) {
    if (text === this.now) return;
    if (this.now !== null) this.past.push(this.now);
    if (this.past.length > KEPT) this.past.shift();
    this.future = [];
    this.now = text;
  }

  /** What was painted since `text` stood there could not be had: forget it. */
  forget(text) {
    while (this.now !== text && this.past.length) this.now = this.past.pop();
    this.now = text;
  }

  /** One mask back; null where there is none. */
  undo() {
    return this.step(this.past, this.future);
  }

  redo() {
    return this.step(this.future, this.past);
  }

  step(from, to) {
    if (!from.length) return null;
    to.push(this.now);
    this.now = from.pop();
    return this.now;
  }
}
