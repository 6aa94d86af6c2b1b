// Before all tests: makes sure of the server programs. After them: ends what a crashed worker left running.
import { ensureBinaries, TOOLS } from "./binary.ts";
import { thisMachine } from "./machine.ts";
import { runFolder, sweepAbandonedRuns, sweepRun } from "./run-folder.ts";

export function setup(): void {
  ensureBinaries(TOOLS, thisMachine);
  const abandoned = sweepAbandonedRuns();
  if (abandoned.length > 0) thisMachine.say(`ended ${abandoned.length} servers of a run that was killed`);
  runFolder();
}

export function teardown(): void {
  const left = sweepRun(runFolder());
  if (left.length > 0) thisMachine.say(`ended ${left.length} servers that tests had left running`);
}
