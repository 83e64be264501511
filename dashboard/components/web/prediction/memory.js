// What was predicted in this browser, by the question's id; the oldest go first. A browser that keeps nothing still asks.

const KEPT = 'attention-lab-predictions';
const MOST = 300;

/** What was predicted of a question, or undefined. */
export const kept = (id) => all()[id];

export function keep(id, value) {
  const { [id]: _, ...rest } = all();
  write(Object.fromEntries([...Object.entries(rest), [id, value]].slice(-MOST)));
}

export function forget(id) {
  const { [id]: _, ...rest } = all();
  write(rest);
}

function all() {
  try {
    const found = JSON.parse(localStorage.getItem(KEPT));
    return found && typeof found === 'object' ? found : {};
  } catch {
    return {};
  }
}

function write(predictions) {
  try {
    localStorage.setItem(KEPT, JSON.stringify(predictions));
  } catch {
    // private, or full
  }
}
