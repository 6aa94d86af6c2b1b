#!/usr/bin/env node
// The `xcache` executable. It handles --version itself, which then loads nothing else.
import { VERSION } from "../version.ts";

const given = process.argv.slice(2);

// The reader of the output may go away, as `head` does.
process.stdout.on("error", () => {});

if (given.length === 1 && (given[0] === "--version" || given[0] === "-V")) {
  process.stdout.write(`${VERSION}\n`);
} else {
  const { runProgram } = await import("./program.ts");
  const { EXIT } = await import("./exit-code.ts");
  process.exitCode = await runProgram(given);
  // After Ctrl-C, do not wait for an unresponsive store or for the end of stdin.
  if (process.exitCode === EXIT.interrupted) process.exit();
}
