// W-TinyLFU (Einziger et al., ACM ToS 2017): an LRU window of 1 %, admission by a frequency sketch, a segmented LRU behind it.

const ROWS = 4;
const COUNTERS_PER_ENTRY = 16;
const SAMPLE_PER_ENTRY = 10;
const MOST = 15;

function position(key, row, width) {
  let mixed = (Math.imul(key + 1, 0x9e3779b1) + Math.imul(row + 1, 0x85ebca6b)) | 0;
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x2c1b3c6d);
  mixed = Math.imul(mixed ^ (mixed >>> 12), 0x297a2d39);
  return ((mixed ^ (mixed >>> 15)) >>> 0) & (width - 1);
}

class Sketch {
  constructor(capacity) {
    this.width = 2 ** Math.ceil(Math.log2((capacity * COUNTERS_PER_ENTRY) / ROWS));
    this.rows = Array.from({ length: ROWS }, () => new Uint8Array(this.width));
    this.sample = capacity * SAMPLE_PER_ENTRY;
    this.additions = 0;
  }

  frequency(key) {
    let least = MOST;
    for (let row = 0; row < ROWS; row++)
      least = Math.min(least, this.rows[row][position(key, row, this.width)]);
    return least;
  }

  add(key) {
    const raised = this.frequency(key) + 1;
    if (raised > MOST) return;
    for (let row = 0; row < ROWS; row++) {
      const at = position(key, row, this.width);
      if (this.rows[row][at] < raised) this.rows[row][at] = raised;
    }
    if (++this.additions < this.sample) return;
    this.additions >>= 1;
    for (const row of this.rows) for (let at = 0; at < row.length; at++) row[at] >>= 1;
  }
}

const oldestOf = (segment) => segment.values().next().value;

export function wTinyLfu(trace, capacity) {
  const windowCapacity = Math.max(1, Math.round(capacity / 100));
  const mainCapacity = capacity - windowCapacity;
  const protectedCapacity = Math.floor(mainCapacity * 0.8);
  const sketch = new Sketch(capacity);
  const window = new Set();
  const probation = new Set();
  const guarded = new Set();
  let hits = 0;

  function hit(key) {
    if (window.delete(key)) return window.add(key);
    if (!guarded.delete(key)) probation.delete(key);
    guarded.add(key);
    if (guarded.size <= protectedCapacity) return;
    const demoted = oldestOf(guarded);
    guarded.delete(demoted);
    probation.add(demoted);
  }

  function offer(candidate) {
    if (probation.size + guarded.size < mainCapacity) return probation.add(candidate);
    const segment = probation.size > 0 ? probation : guarded;
    const victim = oldestOf(segment);
    if (sketch.frequency(candidate) <= sketch.frequency(victim)) return;
    segment.delete(victim);
    probation.add(candidate);
  }

  for (const key of trace) {
    sketch.add(key);
    if (window.has(key) || probation.has(key) || guarded.has(key)) {
      hits++;
      hit(key);
      continue;
    }
    window.add(key);
    if (window.size <= windowCapacity) continue;
    const candidate = oldestOf(window);
    window.delete(candidate);
    offer(candidate);
  }
  return hits;
}
