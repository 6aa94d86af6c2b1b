// Before all tests: compiles the sources unless that is done already, for tests that run them in processes of their own.
import { buildIfStale, whyStale } from "../../scripts/build/build.mjs";
import { thisMachine } from "./machine.ts";
import { STALE_MODULES } from "./own-process.ts";

export function setup(): void {
  const reason = whyStale();
  if (reason === undefined) return;
  thisMachine.say(`compiling the sources: ${reason}`);
  // Tests that import the sources as they are can do without; the others say what is wrong.
  if (buildIfStale() !== 0) process.env[STALE_MODULES] = "src/ does not compile: run `npm run build`";
}
