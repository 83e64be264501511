// What this browser keeps of its reader's answers, by their ids; the oldest go first. A browser that keeps nothing still works.

const MOST = 300;

/** The answers of one kind, which lie in the browser under this name. */
export class Memory {
  constructor(name) {
    this.name = name;
  }

  /** All answers by their ids, in the order in which they were given. */
  all() {
    try {
      const found = JSON.parse(localStorage.getItem(this.name));
      return found && typeof found === 'object' ? found : {};
    } catch {
      return {};
    }
  }

  /** The answer of this id, or undefined. */
  of(id) {
    return this.all()[id];
  }

  keep(id, answer) {
    this.write([...this.without(id), [id, answer]].slice(-MOST));
  }

  forget(id) {
    this.write(this.without(id));
  }

  clear() {
    this.write([]);
  }

  without(id) {
    return Object.entries(this.all()).filter(([each]) => each !== id);
  }

  write(answers) {
    try {
      localStorage.setItem(this.name, JSON.stringify(Object.fromEntries(answers)));
    } catch {
      // private, or full
    }
  }
}
