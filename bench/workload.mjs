// The workload of every scenario: keys, values of about 200 bytes and a Zipf sequence, all generated from a seed.

/** Numbers in [0, 1), the same for the same seed. */
export function randomFrom(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/**
 * Parsed from JSON, like most cached values: every string is flat and has its own memory, while concatenated
 * ones would be flattened inside the measured loop.
 */
function parsedList(count, textOf) {
  const texts = [];
  for (let at = 0; at < count; at++) texts.push(textOf(at));
  return JSON.parse(`[${texts.join(",")}]`);
}

export const makeKeys = (count, prefix = "user") =>
  parsedList(count, (at) => `"${prefix}:${at + 1_000_000}"`);

/** Plain records of 200 bytes of JSON; `size` is what the loops sum up. */
export const makeValues = (count) => parsedList(count, valueText);

function valueText(at) {
  const number = at + 10_000_000;
  return (
    `{"id":${number},"size":${(at % 900) + 100},"name":"Customer number ${number}",` +
    `"email":"customer.${number}@mail.example.com","city":"City ${number}","country":"NL",` +
    `"active":true,"createdAt":"2026-01-${(at % 18) + 10}T12:00:00.000Z"}`
  );
}

/** `length` indexes below `count`, Zipf-distributed with exponent 1; which index is how frequent is shuffled. */
export function zipfSequence(count, length, random) {
  const cumulative = new Float64Array(count);
  let total = 0;
  for (let rank = 0; rank < count; rank++) {
    total += 1 / (rank + 1);
    cumulative[rank] = total;
  }
  const byRank = shuffledIndexes(count, random);
  const sequence = new Uint32Array(length);
  for (let at = 0; at < length; at++) sequence[at] = byRank[firstAbove(cumulative, random() * total)];
  return sequence;
}

function shuffledIndexes(count, random) {
  const indexes = new Uint32Array(count).map((_, at) => at);
  for (let at = count - 1; at > 0; at--) {
    const other = Math.floor(random() * (at + 1));
    [indexes[at], indexes[other]] = [indexes[other], indexes[at]];
  }
  return indexes;
}

function firstAbove(sorted, wanted) {
  let low = 0;
  let high = sorted.length - 1;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (sorted[middle] > wanted) high = middle;
    else low = middle + 1;
  }
  return low;
}

const KEYS = 100_000;
const READS = 1 << 20;

/** The workload of every read and write scenario: all keys are present, the hot ones are spread over memory. */
export function zipfWorkload(seed) {
  return {
    keys: makeKeys(KEYS),
    values: makeValues(KEYS),
    sequence: zipfSequence(KEYS, READS, randomFrom(seed)),
    /** Room for every key, so that nothing is evicted. */
    capacity: KEYS * 2,
  };
}

const POOL = 200;

/**
 * A cache in production: as many entries as it may have, few different values. `keys` beyond `capacity` leave some of the
 * requests without an entry.
 */
export function fullWorkload(seed, { keys: count = KEYS, capacity = count } = {}) {
  const pool = makeValues(POOL);
  const keys = makeKeys(count);
  return {
    keys,
    values: keys.map((_, at) => pool[at % POOL]),
    sequence: zipfSequence(count, READS, randomFrom(seed)),
    capacity,
  };
}
