// What a reader chose to see, in the address: a reload keeps it, and it can be shared.

export const chosen = (name) => new URLSearchParams(location.search).get(name);

/** Write choices into the address; an empty one is the usual. */
export function remember(choices) {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(choices)) {
    if (value) query.set(name, value);
    else query.delete(name);
  }
  history.replaceState(null, "", `${location.pathname}${query.size ? `?${query}` : ""}${location.hash}`);
}
