// SIEVE (Zhang et al., NSDI 2024): a queue with one visited bit per key and a hand that moves from the oldest to the newest.

export function sieve(trace, capacity) {
  const slotOf = new Map();
  const keys = new Uint32Array(capacity);
  const visited = new Uint8Array(capacity);
  const older = new Int32Array(capacity).fill(-1);
  const newer = new Int32Array(capacity).fill(-1);
  let newest = -1;
  let oldest = -1;
  let hand = -1;
  let hits = 0;

  function evict() {
    let slot = hand === -1 ? oldest : hand;
    while (visited[slot] === 1) {
      visited[slot] = 0;
      slot = newer[slot] === -1 ? oldest : newer[slot];
    }
    hand = newer[slot];
    if (newer[slot] === -1) newest = older[slot];
    else older[newer[slot]] = older[slot];
    if (older[slot] === -1) oldest = newer[slot];
    else newer[older[slot]] = newer[slot];
    slotOf.delete(keys[slot]);
    return slot;
  }

  for (const key of trace) {
    const found = slotOf.get(key);
    if (found !== undefined) {
      visited[found] = 1;
      hits++;
      continue;
    }
    const slot = slotOf.size < capacity ? slotOf.size : evict();
    keys[slot] = key;
    visited[slot] = 0;
    slotOf.set(key, slot);
    older[slot] = newest;
    newer[slot] = -1;
    if (newest === -1) oldest = slot;
    else newer[newest] = slot;
    newest = slot;
  }
  return hits;
}
