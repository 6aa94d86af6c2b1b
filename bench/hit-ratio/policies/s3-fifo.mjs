// S3-FIFO (Yang et al., SOSP 2023): a small queue of a tenth, a main queue, and a ghost queue as long as the main one.

class Queue {
  #items = [];
  #head = 0;

  get size() {
    return this.#items.length - this.#head;
  }

  push(key) {
    this.#items.push(key);
  }

  shift() {
    const key = this.#items[this.#head++];
    if (this.#head > 65_536) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    return key;
  }
}

export function s3Fifo(trace, capacity) {
  const smallCapacity = Math.max(1, Math.floor(capacity / 10));
  const mainCapacity = capacity - smallCapacity;
  const small = new Queue();
  const main = new Queue();
  const ghost = new Set();
  const uses = new Map();
  let hits = 0;

  function evictFromMain() {
    for (;;) {
      const key = main.shift();
      const left = uses.get(key);
      if (left === 0) return void uses.delete(key);
      uses.set(key, left - 1);
      main.push(key);
    }
  }

  function evictFromSmall() {
    while (small.size > 0) {
      const key = small.shift();
      if (uses.get(key) > 1) {
        uses.set(key, 0);
        main.push(key);
        if (main.size > mainCapacity) evictFromMain();
        continue;
      }
      uses.delete(key);
      ghost.add(key);
      if (ghost.size > mainCapacity) ghost.delete(ghost.values().next().value);
      return;
    }
  }

  for (const key of trace) {
    const used = uses.get(key);
    if (used !== undefined) {
      hits++;
      if (used < 3) uses.set(key, used + 1);
      continue;
    }
    while (uses.size >= capacity) {
      if (small.size >= smallCapacity) evictFromSmall();
      else evictFromMain();
    }
    (ghost.delete(key) ? main : small).push(key);
    uses.set(key, 0);
  }
  return hits;
}
