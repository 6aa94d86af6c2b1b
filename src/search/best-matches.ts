// The closest keys so far, up to a limit: a heap with the worst of them on top.

export interface Candidate {
  readonly key: string;
  readonly distance: number;
}

export class BestMatches {
  readonly #limit: number;
  readonly #heap: Candidate[] = [];
  readonly #keys = new Set<string>();
  /** Keys beyond this distance can no longer be among the best. */
  furthest: number;

  constructor(limit: number, furthest: number) {
    this.#limit = limit;
    this.furthest = furthest;
  }

  /** `distance` must be at most `furthest`. A key that is already included is ignored. */
  offer(key: string, distance: number): void {
    const candidate = { key, distance };
    const heap = this.#heap;
    const isFull = heap.length === this.#limit;
    if (isFull && compare(candidate, heap[0]!) >= 0) return;
    if (this.#keys.has(key)) return;
    this.#keys.add(key);
    if (isFull) {
      this.#keys.delete(heap[0]!.key);
      this.#sink(candidate);
    } else this.#rise(candidate);
    if (heap.length === this.#limit) this.furthest = heap[0]!.distance;
  }

  /** Best first, equal distances by key. */
  sorted(): Candidate[] {
    return this.#heap.toSorted(compare);
  }

  #rise(candidate: Candidate): void {
    const heap = this.#heap;
    let at = heap.length;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (compare(heap[parent]!, candidate) >= 0) break;
      heap[at] = heap[parent]!;
      at = parent;
    }
    heap[at] = candidate;
  }

  /** Replaces the worst with the candidate. */
  #sink(candidate: Candidate): void {
    const heap = this.#heap;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child + 1 < heap.length && compare(heap[child + 1]!, heap[child]!) > 0) child++;
      if (child >= heap.length || compare(heap[child]!, candidate) <= 0) break;
      heap[at] = heap[child]!;
      at = child;
    }
    heap[at] = candidate;
  }
}

/** Positive if `a` is worse. */
function compare(a: Candidate, b: Candidate): number {
  if (a.distance !== b.distance) return a.distance - b.distance;
  return a.key === b.key ? 0 : a.key < b.key ? -1 : 1;
}
