// The loops that read from a store: every value is used and the sum checked.
import { fillInFlight, timeFewer } from "./callers.mjs";
import { startServer } from "./server.mjs";
import { asStored, evenWorkload, sizeReader } from "./workload.mjs";

/** A server, a library on it, and a stored workload: objects, or text for every library. */
export async function openFilled(open, seed, { isText = false } = {}) {
  const server = await startServer();
  const driver = await open({ url: server.url });
  const { values, ...workload } = evenWorkload(seed);
  const stores = (value) => (isText ? JSON.stringify(value) : asStored(driver, value));
  const stored = { ...workload, values: values.map(stores) };
  await fillInFlight(driver, stored);
  return { driver, workload: stored, sizeOf: isText ? (text) => text.length : sizeReader(driver) };
}

/** Microseconds per read of one key. `read` is a method of the driver, called by `inFlight` callers concurrently. */
export function timeReads(driver, read, workload, { inFlight, oneIn }) {
  const { keys, sequence } = workload;
  const sizeOf = sizeReader(driver);
  const expectedUpTo = prefixSums(workload, sizeOf);
  return timeFewer(sequence.length, oneIn, async (from, to) => {
    let next = from;
    let sum = 0;
    const caller = async () => {
      while (next < to) {
        const value = await read(keys[sequence[next++]]);
        sum += sizeOf(value);
      }
    };
    await Promise.all(Array.from({ length: inFlight }, caller));
    expectSum(sum, expectedUpTo[to] - expectedUpTo[from]);
  });
}

export function prefixSums({ values, sequence }, sizeOf) {
  const sums = new Float64Array(sequence.length + 1);
  for (let at = 0; at < sequence.length; at++) sums[at + 1] = sums[at] + sizeOf(values[sequence[at]]);
  return sums;
}

export function expectSum(sum, expected) {
  if (sum !== expected) throw new Error(`the values read add up to ${sum}, expected ${expected}`);
}
