// Doubly linked lists of keys, which are small integers: a key is in at most one list of a group.

const NONE = -1;

export class Lists {
  constructor(keys, count) {
    this.older = new Int32Array(keys).fill(NONE);
    this.newer = new Int32Array(keys).fill(NONE);
    /** The list that a key is in, plus one; 0 for none. */
    this.listOf = new Uint8Array(keys);
    this.newest = new Int32Array(count).fill(NONE);
    this.oldest = new Int32Array(count).fill(NONE);
    this.sizes = new Uint32Array(count);
  }

  /** The number of a key's list, -1 for none. */
  of(key) {
    return this.listOf[key] - 1;
  }

  /** Moves a key to the newest end of a list. */
  push(list, key) {
    this.remove(key);
    const next = this.newest[list];
    this.older[key] = next;
    this.newer[key] = NONE;
    if (next === NONE) this.oldest[list] = key;
    else this.newer[next] = key;
    this.newest[list] = key;
    this.listOf[key] = list + 1;
    this.sizes[list]++;
  }

  /** Inserts a key before another one of a list, on its older side. */
  insertBefore(list, key, next) {
    this.remove(key);
    const previous = this.older[next];
    this.older[key] = previous;
    this.newer[key] = next;
    this.older[next] = key;
    if (previous === NONE) this.oldest[list] = key;
    else this.newer[previous] = key;
    this.listOf[key] = list + 1;
    this.sizes[list]++;
  }

  remove(key) {
    const list = this.listOf[key] - 1;
    if (list < 0) return;
    const previous = this.older[key];
    const next = this.newer[key];
    if (previous === NONE) this.oldest[list] = next;
    else this.newer[previous] = next;
    if (next === NONE) this.newest[list] = previous;
    else this.older[next] = previous;
    this.listOf[key] = 0;
    this.sizes[list]--;
  }
}

/** How many keys a trace may have: they are numbers below this. */
export function keysOf(trace) {
  let most = 0;
  for (const key of trace) if (key > most) most = key;
  return most + 1;
}
