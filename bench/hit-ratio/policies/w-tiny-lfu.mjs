// W-TinyLFU as in Caffeine (Einziger et al., ACM ToS 2017; Einziger et al., Middleware 2018): an LRU window, admission by a
// frequency sketch, a segmented LRU behind it, and a hill climber that sizes the window by the hit ratio.
import { keysOf, Lists } from "./lists.mjs";

const ROWS = 4;
const MOST = 15;
const SAMPLE_PER_ENTRY = 10;
/** The four counters of a key are in one block of 128. */
const BLOCK = 128;
const COUNTERS_PER_ENTRY = 16;

const FIRST_WINDOW = 0.01;
const PROTECTED = 0.8;
const STEP = 0.0625;
const STEP_DECAY = 0.98;
/** A change of the hit ratio at which the climber starts over with the first step. */
const RESTART = 0.05;
/** Below this frequency a losing candidate gets no random second chance. */
const SUSPICIOUS = 6;

function mix(number) {
  let mixed = Math.imul(number ^ (number >>> 17), 0xed5ad4bb);
  mixed = Math.imul(mixed ^ (mixed >>> 11), 0xac4c1b51);
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x31848bab);
  return (mixed ^ (mixed >>> 14)) >>> 0;
}

export class Sketch {
  constructor(capacity) {
    const entries = 2 ** Math.ceil(Math.log2(Math.max(capacity, BLOCK / COUNTERS_PER_ENTRY)));
    this.blocks = (entries * COUNTERS_PER_ENTRY) / BLOCK;
    this.counters = new Uint8Array(entries * COUNTERS_PER_ENTRY);
    this.sample = capacity * SAMPLE_PER_ENTRY;
    this.additions = 0;
    this.at = new Uint32Array(ROWS);
  }

  locate(key) {
    const hash = mix(key + 1);
    const block = (hash % this.blocks) * BLOCK;
    const within = mix(hash);
    for (let row = 0; row < ROWS; row++)
      this.at[row] = block + row * (BLOCK / ROWS) + ((within >>> (8 * row)) & (BLOCK / ROWS - 1));
  }

  frequency(key) {
    this.locate(key);
    const { at, counters } = this;
    return Math.min(counters[at[0]], counters[at[1]], counters[at[2]], counters[at[3]]);
  }

  add(key) {
    this.locate(key);
    let added = false;
    for (let row = 0; row < ROWS; row++) {
      if (this.counters[this.at[row]] === MOST) continue;
      this.counters[this.at[row]]++;
      added = true;
    }
    if (!added || ++this.additions < this.sample) return;
    let odd = 0;
    for (let at = 0; at < this.counters.length; at++) {
      odd += this.counters[at] & 1;
      this.counters[at] >>= 1;
    }
    this.additions = (this.additions - (odd >> 2)) >> 1;
  }
}

const WINDOW = 0;
const PROBATION = 1;
const GUARDED = 2;

export function wTinyLfu(trace, capacity) {
  const lists = new Lists(keysOf(trace), 3);
  const { sizes, oldest } = lists;
  const sketch = new Sketch(capacity);
  let mostWindow = Math.max(1, Math.floor(capacity * FIRST_WINDOW));
  let mostGuarded = Math.floor((capacity - mostWindow) * PROTECTED);
  let step = -STEP * capacity;
  let ratioBefore = 0;
  let requests = 0;
  let hitsOfSample = 0;
  let hits = 0;
  let lot = 1;

  function climb() {
    if (requests < sketch.sample) return;
    const ratio = hitsOfSample / requests;
    const change = ratio - ratioBefore;
    const amount = change >= 0 ? step : -step;
    step = Math.abs(change) >= RESTART ? STEP * capacity * Math.sign(amount) : STEP_DECAY * amount;
    ratioBefore = ratio;
    requests = 0;
    hitsOfSample = 0;
    resize(Math.trunc(amount));
  }

  function resize(amount) {
    const quota =
      amount > 0 ? Math.min(amount, mostGuarded) : -Math.min(-amount, Math.max(0, mostWindow - 1));
    mostWindow += quota;
    mostGuarded -= quota;
    while (sizes[GUARDED] > mostGuarded) lists.push(PROBATION, oldest[GUARDED]);
    if (quota > 0)
      for (let left = quota; left > 0 && sizes[WINDOW] < mostWindow; left--) {
        const key = sizes[PROBATION] > 0 ? oldest[PROBATION] : oldest[GUARDED];
        if (key === -1) break;
        lists.push(WINDOW, key);
      }
    else while (sizes[WINDOW] > mostWindow) lists.push(PROBATION, oldest[WINDOW]);
  }

  function admits(candidate, victim) {
    const ours = sketch.frequency(candidate);
    if (ours > sketch.frequency(victim)) return true;
    if (ours < SUSPICIOUS) return false;
    lot = (Math.imul(lot, 1_664_525) + 1_013_904_223) >>> 0;
    return lot >>> 25 === 0;
  }

  function evict() {
    let candidate = -1;
    if (sizes[WINDOW] > mostWindow) {
      candidate = oldest[WINDOW];
      lists.push(PROBATION, candidate);
    }
    if (sizes[WINDOW] + sizes[PROBATION] + sizes[GUARDED] <= capacity) return;
    let victim = oldest[PROBATION];
    if (victim === -1 || (victim === candidate && sizes[GUARDED] > 0))
      victim = victim === -1 ? oldest[GUARDED] : candidate;
    if (victim === -1) victim = oldest[WINDOW];
    lists.remove(candidate === -1 || victim === candidate || admits(candidate, victim) ? victim : candidate);
  }

  for (const key of trace) {
    sketch.add(key);
    const list = lists.of(key);
    requests++;
    if (list >= 0) {
      hits++;
      hitsOfSample++;
      lists.push(list === WINDOW ? WINDOW : GUARDED, key);
      if (sizes[GUARDED] > mostGuarded) lists.push(PROBATION, oldest[GUARDED]);
    } else {
      lists.push(WINDOW, key);
      evict();
    }
    climb();
  }
  return hits;
}
