// The read loops: the same shape for every library; each value is used and the sum checked.
import { byCpu, timeChunks } from "./timing.mjs";

/** Stores every key of a workload. */
export async function fill(driver, { keys, values }, tagsOf) {
  for (let at = 0; at < keys.length; at++) await driver.set(keys[at], values[at], tagsOf?.(at));
}

/** Nanoseconds per read. `read` is a method of the driver; a synchronous driver is not awaited. */
export function timeReads(driver, read, workload) {
  const { keys, sequence } = workload;
  const expectedUpTo = prefixSums(workload);
  const readChunk = driver.synchronous ? readAtOnce : readAwaited;
  return timeChunks(sequence.length, async (from, to) => {
    const sum = await readChunk(read, keys, sequence, from, to);
    const expected = expectedUpTo[to] - expectedUpTo[from];
    if (sum !== expected) throw new Error(`the values read add up to ${sum}, expected ${expected}`);
  });
}

/** Like `timeReads`, in CPU time: it hardly depends on what else the machine does. */
export async function timeCpu(driver, read, workload) {
  return byCpu(await timeReads(driver, read, workload));
}

function readAtOnce(read, keys, sequence, from, to) {
  let sum = 0;
  for (let at = from; at < to; at++) sum += read(keys[sequence[at]]).size;
  return sum;
}

async function readAwaited(read, keys, sequence, from, to) {
  let sum = 0;
  for (let at = from; at < to; at++) sum += (await read(keys[sequence[at]])).size;
  return sum;
}

function prefixSums({ values, sequence }) {
  const sums = new Float64Array(sequence.length + 1);
  for (let at = 0; at < sequence.length; at++) sums[at + 1] = sums[at] + values[sequence[at]].size;
  return sums;
}
