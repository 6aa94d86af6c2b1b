#!/usr/bin/env node
// The program `xcache`. It answers --version by itself, so that nothing else has to be loaded for it.
import { VERSION } from "../version.ts";

const given = process.argv.slice(2);

if (given.length === 1 && (given[0] === "--version" || given[0] === "-V")) {
  process.stdout.write(`${VERSION}\n`);
} else {
  const { runProgram } = await import("./program.ts");
  const { EXIT } = await import("./exit-code.ts");
  process.exitCode = await runProgram(given);
  // Whoever presses Ctrl-C does not wait for a store that does not answer, nor for an end of the input.
  if (process.exitCode === EXIT.interrupted) process.exit();
}
