// The application's root, on every page, under a base path and behind a proxy.

// A component's script comes from <root>/_stcore/bidi-components/…, a follower's from <root>/reader/…; document.baseURI is
// only right as long as page names hold no slash.
export const root = `${import.meta.url.split(/\/(?:_stcore|reader)\//)[0]}/`;
