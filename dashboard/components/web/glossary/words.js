// Words in the sentences of a page, found without touching Streamlit's elements: as ranges, which the browser can highlight.

/** The text nodes of an element, but those inside what `except` selects. */
export function texts(element, except) {
  const found = [];
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    if (!walker.currentNode.parentElement.closest(except)) found.push(walker.currentNode);
  }
  return found;
}

/** The range of so many letters from a place on, counted through all nodes. */
export function span(nodes, start, length) {
  const range = new Range();
  let passed = 0;
  let begun = false;
  for (const node of nodes) {
    const end = passed + node.length;
    if (!begun && start < end) {
      range.setStart(node, start - passed);
      begun = true;
    }
    if (begun && start + length <= end) {
      range.setEnd(node, start + length - passed);
      break;
    }
    passed = end;
  }
  return range;
}

/** The one of `found`, each with its `range`, that is under a pointer; undefined where none is. */
export function under(found, { clientX: x, clientY: y, target }) {
  const holds = ({ left, right, top, bottom }) => x >= left && x <= right && y >= top && y <= bottom;
  return found.find(({ range }) => range.startContainer.parentElement?.contains(target) && [...range.getClientRects()].some(holds));
}

/** Highlight these ranges under a name of a style sheet's; where the browser cannot, nothing is to be seen. */
export const highlight = (name, ranges) => globalThis.CSS.highlights?.set(name, new Highlight(...ranges));
export const leave = (name) => globalThis.CSS.highlights?.delete(name);
