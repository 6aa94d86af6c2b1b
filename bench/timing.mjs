// How an operation is timed: in chunks, warmed up, with the median chunk as the process's figure.
import { setImmediate as nextTurn } from "node:timers/promises";

/** Long enough to include its share of young garbage collection, short enough to have many of them. */
const CHUNK = 1 << 16;
const WARM_UP_MS = 400;
const MEASURED_MS = 700;
/** However slow the library is. */
const FEWEST_CHUNKS = 5;

export const median = (numbers) => {
  const sorted = [...numbers].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
};

/**
 * Nanoseconds per operation of `runChunk(from, to)`, which works on positions of the sequence: `figure` by the wall
 * clock, `cpu` of all threads. Each chunk ends with a turn of the event loop, so that deferred work is counted.
 */
export async function timeChunks(length, runChunk, warmUpMs = WARM_UP_MS) {
  let from = 0;
  const next = async () => {
    if (from + CHUNK > length) from = 0;
    const cpuBefore = process.cpuUsage();
    const started = performance.now();
    await runChunk(from, from + CHUNK);
    await nextTurn();
    const wallMs = performance.now() - started;
    const cpu = process.cpuUsage(cpuBefore);
    from += CHUNK;
    return { wallMs, cpuMs: (cpu.user + cpu.system) / 1e3 };
  };
  const repeat = async (leastMs, fewest) => {
    const chunks = [];
    for (let spent = 0; spent < leastMs || chunks.length < fewest; spent += chunks.at(-1).wallMs)
      chunks.push(await next());
    return chunks;
  };
  await repeat(warmUpMs, FEWEST_CHUNKS);
  const chunks = await repeat(MEASURED_MS, FEWEST_CHUNKS);
  const perCall = (milliseconds) => (median(milliseconds) / CHUNK) * 1e6;
  return {
    figure: perCall(chunks.map(({ wallMs }) => wallMs)),
    cpu: perCall(chunks.map(({ cpuMs }) => cpuMs)),
  };
}

/** Figures whose time is CPU time alone. */
export const byCpu = ({ cpu }) => ({ figure: cpu, cpu });
