// Least recently used.

export function lru(trace, capacity) {
  const cached = new Set();
  let hits = 0;
  for (const key of trace) {
    if (cached.delete(key)) hits++;
    else if (cached.size === capacity) cached.delete(cached.values().next().value);
    cached.add(key);
  }
  return hits;
}
