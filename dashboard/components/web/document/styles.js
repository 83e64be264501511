// The style sheets of the components, by name: the server writes them into the element of this id (components/documents/pages.py).

export const STYLES = JSON.parse(document.getElementById('styles').textContent);
