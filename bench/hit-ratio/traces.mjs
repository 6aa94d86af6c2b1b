// Request traces with fixed seeds: each is a list of key numbers, the same on every machine.

/** Number of keys that requests are drawn from. */
export const UNIVERSE = 100_000;

/**
 * Numbers in [0, 1) by mulberry32.
 * @param {number} seed
 * @returns {() => number}
 */
function random(seed) {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/**
 * Ranks below UNIVERSE, the rank r with a weight of 1 / (r + 1) ** exponent.
 * @param {number} exponent
 * @param {() => number} next
 * @returns {() => number}
 */
function zipfRanks(exponent, next) {
  const sums = new Float64Array(UNIVERSE);
  let sum = 0;
  for (let rank = 0; rank < UNIVERSE; rank++) {
    sum += (rank + 1) ** -exponent;
    sums[rank] = sum;
  }
  return () => {
    const wanted = next() * sum;
    let low = 0;
    let high = UNIVERSE - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (/** @type {number} */ (sums[middle]) < wanted) low = middle + 1;
      else high = middle;
    }
    return low;
  };
}

/**
 * @param {number} length
 * @param {(at: number) => number} key
 */
const trace = (length, key) => Uint32Array.from({ length }, (_, at) => key(at));

/** @param {number} exponent @param {number} seed @returns {(length: number) => Uint32Array} */
const zipf = (exponent, seed) => (length) => trace(length, zipfRanks(exponent, random(seed)));

/** Four parts Zipf, then one part of keys that never come again. @param {number} length */
function scans(length) {
  const run = 2_000;
  const rank = zipfRanks(1, random(2));
  let fresh = UNIVERSE;
  return trace(length, (at) => (at % (5 * run) < 4 * run ? rank() : fresh++));
}

/** Zipf whose ranks move on to other keys every so often. @param {number} every @param {number} by */
const shifting = (every, by) => (/** @type {number} */ length) => {
  const rank = zipfRanks(1, random(3));
  return trace(length, (at) => (rank() + Math.floor(at / every) * by) % UNIVERSE);
};

/** @param {number} length */
const loop = (length) => trace(length, (at) => at % 1_853);

/** Every second request goes round a loop of 1,500 keys. @param {number} length */
function loopAndZipf(length) {
  const next = random(4);
  const rank = zipfRanks(1, next);
  let at = 0;
  return trace(length, () => (next() < 0.5 ? UNIVERSE + (at++ % 1_500) : rank()));
}

/** One request in five is for a new key, the others repeat one of the last 20,000, the recent ones above all. @param {number} length */
function recent(length) {
  const next = random(7);
  const keys = new Uint32Array(length);
  let fresh = 0;
  for (let at = 0; at < length; at++) {
    const distance =
      next() < 0.2 ? Number.POSITIVE_INFINITY : Math.floor(Math.exp(next() * Math.log(20_000)));
    keys[at] = distance > at ? fresh++ : /** @type {number} */ (keys[at - distance]);
  }
  return keys;
}

/**
 * The five reference traces, with what Belady's optimum reaches there and what ours must, in per cent
 * (a million requests, 1,000 entries), then further ones that guard against tuning for those five.
 * @type {readonly { name: string, make: (length: number) => Uint32Array, optimum?: number, goal?: number }[]}
 */
export const TRACES = [
  { name: "Zipf 0.9", make: zipf(0.9, 1), optimum: 53.3, goal: 44.8 },
  { name: "Zipf 1.0", make: zipf(1, 1), optimum: 66.5, goal: 59.5 },
  { name: "Zipf + scans", make: scans, optimum: 53.1, goal: 47.5 },
  { name: "shifting Zipf", make: shifting(100_000, 1_000), optimum: 66.2, goal: 58.5 },
  { name: "loop", make: loop, optimum: 53.9, goal: 47 },
  { name: "loop + Zipf", make: loopAndZipf },
  { name: "turnover", make: shifting(250_000, 33_333) },
  { name: "fast shift", make: shifting(20_000, 1_000) },
  { name: "drift", make: shifting(100, 10) },
  { name: "recent keys", make: recent },
];

/**
 * Zipf(1.0), and the size of each key: a Pareto distribution from 100 bytes to 1 MB.
 * @param {number} length
 * @returns {{ trace: Uint32Array, sizes: Uint32Array }}
 */
export function zipfWithSizes(length) {
  const next = random(8);
  const sizes = Uint32Array.from({ length: UNIVERSE }, () =>
    Math.min(1_000_000, 100 / (1 - next()) ** (1 / 1.1)),
  );
  return { trace: trace(length, zipfRanks(1, random(9))), sizes };
}
