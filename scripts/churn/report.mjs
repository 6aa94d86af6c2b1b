// What `npm run churn` measured, as a table, and what counts as growth.

/**
 * @typedef {object} Sample
 * @property {number} minute
 * @property {number} operations
 * @property {number} failures
 * @property {number} heapMb after a collection
 * @property {number} buffersMb
 * @property {number} rssMb
 * @property {number} timers those that keep no process alive too
 * @property {number} sockets
 * @property {number} resources that keep the process alive
 * @property {number} listeners on sockets and on the process
 * @property {number} serverKeys
 * @property {number} liveKeys entries that have not expired, and stamps, at most
 */

/** The columns and how wide they are. */
const COLUMNS = /** @type {const} */ ([
  ["minute", 6, 1],
  ["operations", 11, 0],
  ["failures", 9, 0],
  ["heapMb", 8, 1],
  ["buffersMb", 10, 1],
  ["rssMb", 7, 0],
  ["timers", 7, 0],
  ["sockets", 8, 0],
  ["resources", 10, 0],
  ["listeners", 10, 0],
  ["serverKeys", 11, 0],
  ["liveKeys", 9, 0],
]);

/** The heading, or a row. @param {Sample} [sample] */
export function printRow(sample) {
  const cells = COLUMNS.map(([name, width, digits]) =>
    (sample === undefined ? name : sample[name].toFixed(digits)).padStart(width),
  );
  console.log(cells.join(""));
}

/** The allowed growth of the second half; one byte left behind by every operation is more than this in ten minutes. */
const MOST_GROWTH_MB = 2;
/** Timers, sockets, resources and listeners that come and go. */
const MOST_MORE = 4;
/** The server keeps some expired keys for a while. */
const MOST_KEYS = 1.5;

/** @typedef {{ what: string, value: number, most: number }} Finding */

/**
 * How each figure developed in the second half.
 * @param {readonly Sample[]} samples
 * @returns {{ findings: Finding[] }}
 */
export function growth(samples) {
  const half = samples.slice(Math.floor(samples.length / 2));
  const first = samples.slice(0, samples.length - half.length);
  const rise = (/** @type {"heapMb" | "buffersMb"} */ name) => ({
    what: `${name}, rise over the second half`,
    value: slope(half.map((sample) => sample[name])) * (half.length - 1),
    most: MOST_GROWTH_MB,
  });
  const more = (/** @type {"timers" | "sockets" | "resources" | "listeners"} */ name) => ({
    what: `${name}, more than in the first half`,
    value: Math.max(...half.map((sample) => sample[name])) - Math.max(...first.map((sample) => sample[name])),
    most: MOST_MORE,
  });
  const keys = {
    what: "keys on the server for each that has not expired",
    value: Math.max(...half.map(({ serverKeys, liveKeys }) => serverKeys / Math.max(1, liveKeys))),
    most: MOST_KEYS,
  };
  return {
    findings: [
      rise("heapMb"),
      rise("buffersMb"),
      more("timers"),
      more("sockets"),
      more("resources"),
      more("listeners"),
      keys,
    ],
  };
}

/** Of the line through these points that the least squares give, a step. @param {readonly number[]} values */
function slope(values) {
  const middle = (values.length - 1) / 2;
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  let [rise, run] = [0, 0];
  for (const [at, value] of values.entries()) {
    rise += (at - middle) * (value - mean);
    run += (at - middle) ** 2;
  }
  return run === 0 ? 0 : rise / run;
}

/**
 * Prints the findings and whether all is well; returns that.
 * @param {{ findings: readonly Finding[], left: number, mostLeft: number, failures: number }} seen
 */
export function verdict({ findings, left, mostLeft, failures }) {
  const all = [
    ...findings,
    { what: "keys on the server when everything has expired", value: left, most: mostLeft },
    { what: "failed operations", value: failures, most: 0 },
  ];
  console.log();
  for (const { what, value, most } of all) {
    const isFine = value <= most;
    console.log(`${isFine ? "ok    " : "GROWTH"}  ${what}: ${value.toFixed(1)} (at most ${most})`);
  }
  const isFine = all.every(({ value, most }) => value <= most);
  console.log(isFine ? "\nNothing grows." : "\nSomething grows.");
  return isFine;
}
