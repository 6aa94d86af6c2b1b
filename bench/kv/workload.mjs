// The workload of the store scenarios: 10,000 keys, requested evenly, so that concurrent callers rarely want the same one.
import { makeKeys, makeValues, randomFrom } from "../workload.mjs";

const KEYS = 10_000;
const READS = 1 << 18;

export function evenWorkload(seed) {
  const random = randomFrom(seed);
  return {
    keys: makeKeys(KEYS),
    values: makeValues(KEYS),
    sequence: new Uint32Array(READS).map(() => Math.floor(random() * KEYS)),
  };
}

const TEAMS = Array.from({ length: 100 }, (_, at) => `team:${at}`);
const KINDS = Array.from({ length: 10 }, (_, at) => `kind:${at}`);

/** Two tags per entry. */
export const twoTags = (at) => [
  TEAMS[at % TEAMS.length],
  KINDS[Math.floor(at / TEAMS.length) % KINDS.length],
];

/** A raw-text driver defines how a value is written and what is summed up; others take and return values. */
export const asStored = (driver, value) => (driver.write === undefined ? value : driver.write(value));
export const sizeReader = (driver) => driver.sizeOf ?? ((value) => value.size);
