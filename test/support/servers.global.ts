// Before all tests: makes sure of the server programs. After them: ends what a crashed worker left running.
import { execFileSync } from "node:child_process";
import { ensureBinaries, TOOLS } from "./binary.ts";
import { thisMachine } from "./machine.ts";
import { runFolder, sweepAbandonedRuns, sweepRun } from "./run-folder.ts";

export function setup(): void {
  ensureBinaries(TOOLS, thisMachine);
  // Freshly installed packages are still on their way to the disk, and the first test to call fsync would wait for them all.
  if (process.platform !== "win32") execFileSync("sync");
  const abandoned = sweepAbandonedRuns();
  if (abandoned.length > 0) thisMachine.say(`ended ${abandoned.length} servers of a run that was killed`);
  runFolder();
  // Node parses these certificates at every start, which takes longer than the rest of it. Tests talk to this machine only.
  delete process.env.NODE_EXTRA_CA_CERTS;
}

export function teardown(): void {
  const left = sweepRun(runFolder());
  if (left.length > 0) thisMachine.say(`ended ${left.length} servers that tests had left running`);
}
