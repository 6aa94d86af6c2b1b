// How much slower than usual this machine is now, so that "soon" means the same on a busy one.
import { readFileSync } from "node:fs";
import { availableParallelism, loadavg } from "node:os";

const SAMPLE_MS = 100;
/** Samples of ten seconds. */
const MOST_SAMPLES = 100;
const samples: number[] = [];

/** How many processes and threads run or wait for a processor, this one included. */
function runnable(): number {
  try {
    // proc(5): the fourth field of loadavg is runnable/existing scheduling entities.
    return Number(readFileSync("/proc/loadavg", "utf8").split(" ")[3]?.split("/")[0]);
  } catch {
    return loadavg()[0] ?? 1;
  }
}

function sample(): void {
  if (samples.push(runnable()) > MOST_SAMPLES) samples.shift();
}

sample();
setInterval(sample, SAMPLE_MS).unref();

/** The tests of a run crowd the processors this much by themselves; their limits allow for it. */
const USUAL_PER_PROCESSOR = 1.5;

/** A test and the servers it talks to take turns, and each of them waits its time for a processor. */
const TURNS = 2;

/** 1 unless more than the tests wants to run; 5 where three times as much does. Of the last ten seconds. */
function slowness(): number {
  const mean = samples.reduce((sum, each) => sum + each, 0) / samples.length;
  const crowd = mean / availableParallelism() / USUAL_PER_PROCESSOR;
  return Math.max(1, 1 + TURNS * (crowd - 1));
}

/** The limit for something that takes less than `ms` where nothing but the tests runs. */
export const soon = (ms: number): number => ms * slowness();
