// Belady's optimum: evicts the key whose next use is farthest away. Requires knowledge of the future.

/** Positions in the trace; the largest comes off first. */
class Farthest {
  #heap = [];

  push(position) {
    const heap = this.#heap;
    let at = heap.length;
    heap.push(position);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (heap[parent] >= position) break;
      heap[at] = heap[parent];
      at = parent;
    }
    heap[at] = position;
  }

  pop() {
    const heap = this.#heap;
    const top = heap[0];
    const last = heap.pop();
    if (heap.length === 0) return top;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && heap[child + 1] > heap[child]) child++;
      if (heap[child] <= last) break;
      heap[at] = heap[child];
      at = child;
    }
    heap[at] = last;
    return top;
  }
}

/** For each request, when its key is requested next; a distinct number past the end when it never is. */
function nextUses(trace) {
  const next = new Uint32Array(trace.length);
  const seen = new Map();
  for (let at = trace.length - 1; at >= 0; at--) {
    next[at] = seen.get(trace[at]) ?? trace.length + at;
    seen.set(trace[at], at);
  }
  return next;
}

export function belady(trace, capacity) {
  const next = nextUses(trace);
  const keyOf = new Map();
  const nextOf = new Map();
  const farthest = new Farthest();
  let hits = 0;
  for (let at = 0; at < trace.length; at++) {
    const key = trace[at];
    if (nextOf.has(key)) hits++;
    keyOf.delete(nextOf.get(key));
    keyOf.set(next[at], key);
    nextOf.set(key, next[at]);
    farthest.push(next[at]);
    // The new key itself may be the victim: nothing has to be stored.
    while (nextOf.size > capacity) {
      const position = farthest.pop();
      if (!keyOf.has(position)) continue;
      nextOf.delete(keyOf.get(position));
      keyOf.delete(position);
    }
  }
  return hits;
}
