// Policies for entries of different sizes, bounded by bytes: LRU, GDSF (Cherkasova, 1998) and W-TinyLFU with a hill climber.
import { keysOf, Lists } from "./lists.mjs";
import { Sketch } from "./w-tiny-lfu.mjs";

export function lruBySize(trace, sizes, maxBytes) {
  const lists = new Lists(keysOf(trace), 1);
  let used = 0;
  let hits = 0;
  let bytes = 0;
  for (const key of trace) {
    if (lists.of(key) === 0) {
      hits++;
      bytes += sizes[key];
      lists.push(0, key);
      continue;
    }
    if (sizes[key] > maxBytes) continue;
    used += sizes[key];
    while (used > maxBytes) {
      used -= sizes[lists.oldest[0]];
      lists.remove(lists.oldest[0]);
    }
    lists.push(0, key);
  }
  return { hits, bytes };
}

/** A binary heap of keys by priority; an entry whose priority has changed is skipped when it comes off. */
class Priorities {
  #heap = [];

  push(priority, key) {
    const heap = this.#heap;
    let at = heap.length;
    heap.push([priority, key]);
    for (; at > 0 && heap[(at - 1) >> 1][0] > priority; at = (at - 1) >> 1) heap[at] = heap[(at - 1) >> 1];
    heap[at] = [priority, key];
  }

  pop() {
    const heap = this.#heap;
    const [top] = heap;
    const last = heap.pop();
    if (heap.length === 0) return top;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && heap[child + 1][0] < heap[child][0]) child++;
      if (heap[child][0] >= last[0]) break;
      heap[at] = heap[child];
      at = child;
    }
    heap[at] = last;
    return top;
  }
}

export function gdsf(trace, sizes, maxBytes) {
  const keys = keysOf(trace);
  const priorities = new Float64Array(keys);
  const uses = new Uint32Array(keys);
  const heap = new Priorities();
  let age = 0;
  let used = 0;
  let hits = 0;
  let bytes = 0;
  for (const key of trace) {
    if (uses[key] > 0) {
      hits++;
      bytes += sizes[key];
    } else {
      if (sizes[key] > maxBytes) continue;
      used += sizes[key];
      while (used > maxBytes) {
        const [priority, evicted] = heap.pop();
        if (uses[evicted] === 0 || priorities[evicted] !== priority) continue;
        age = priority;
        uses[evicted] = 0;
        used -= sizes[evicted];
      }
    }
    uses[key]++;
    priorities[key] = age + uses[key] / sizes[key];
    heap.push(priorities[key], key);
  }
  return { hits, bytes };
}

const WINDOW = 0;
const PROBATION = 1;
const GUARDED = 2;

export function wTinyLfuBySize(trace, sizes, maxBytes) {
  const lists = new Lists(keysOf(trace), 3);
  const { oldest } = lists;
  const weights = [0, 0, 0];
  let total = 0;
  for (const key of trace) total += sizes[key];
  const sketch = new Sketch(Math.max(64, Math.round((maxBytes * trace.length) / total)));
  let mostWindow = maxBytes * 0.01;
  let step = -0.0625 * maxBytes;
  let ratioBefore = 0;
  let requests = 0;
  let hitsOfSample = 0;
  let hits = 0;
  let bytes = 0;

  function move(list, key) {
    const from = lists.of(key);
    if (from >= 0) weights[from] -= sizes[key];
    lists.push(list, key);
    weights[list] += sizes[key];
  }

  function drop(key) {
    weights[lists.of(key)] -= sizes[key];
    lists.remove(key);
  }

  const isOver = () => weights[0] + weights[1] + weights[2] > maxBytes;

  function evict() {
    const candidates = [];
    while (weights[WINDOW] > mostWindow) {
      candidates.push(oldest[WINDOW]);
      move(PROBATION, oldest[WINDOW]);
    }
    for (const candidate of candidates) {
      while (isOver() && lists.of(candidate) === PROBATION) {
        const victim = oldest[PROBATION];
        const isStronger = victim === candidate || sketch.frequency(candidate) > sketch.frequency(victim);
        drop(isStronger ? victim : candidate);
      }
    }
    while (isOver())
      drop(
        oldest[PROBATION] !== -1
          ? oldest[PROBATION]
          : oldest[GUARDED] !== -1
            ? oldest[GUARDED]
            : oldest[WINDOW],
      );
  }

  for (const key of trace) {
    sketch.add(key);
    const list = lists.of(key);
    requests++;
    if (list >= 0) {
      hits++;
      hitsOfSample++;
      bytes += sizes[key];
      move(list === WINDOW ? WINDOW : GUARDED, key);
      while (weights[GUARDED] > (maxBytes - mostWindow) * 0.8) move(PROBATION, oldest[GUARDED]);
    } else if (sizes[key] <= maxBytes) {
      move(WINDOW, key);
      evict();
    }
    if (requests < sketch.sample) continue;
    const change = hitsOfSample / requests - ratioBefore;
    ratioBefore = hitsOfSample / requests;
    const amount = change >= 0 ? step : -step;
    step = Math.abs(change) >= 0.05 ? 0.0625 * maxBytes * Math.sign(amount) : 0.98 * amount;
    mostWindow = Math.min(0.8 * maxBytes, Math.max(0.001 * maxBytes, mostWindow + amount));
    requests = 0;
    hitsOfSample = 0;
    evict();
  }
  return { hits, bytes };
}
