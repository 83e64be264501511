// The terms of a page and what they mean, in the list below it.

import { element } from '../prediction/element.js';

/** Show them: [name, meaning] each. Without any there is no list. */
export function explain(terms = []) {
  const list = document.getElementById('terms-list');
  list.closest('details').hidden = !terms.length;
  list.replaceChildren(
    ...terms.flatMap(([name, meaning]) => [element('dt', { textContent: name }), element('dd', { textContent: `${meaning}.` })])
  );
}
