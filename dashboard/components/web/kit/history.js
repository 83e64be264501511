// The browser's history: one entry a view. Streamlit goes to a page by its bare address, and what the page is about follows.

const FILLED = Symbol('filled in');

/** Let the settings of a page take the place of its bare address: else going back stops there, at the same page. */
export function oneEntryAView() {
  const push = history.pushState;
  if (push[FILLED]) return;
  history.pushState = function (state, unused, url) {
    const to = new URL(url ?? location.href, location.href);
    const fills = !location.search && to.search && to.pathname === location.pathname;
    return fills ? this.replaceState(state, unused, url) : push.call(this, state, unused, url);
  };
  history.pushState[FILLED] = true;
}
