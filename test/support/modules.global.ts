// Before tests that run the sources in processes of their own, or look at what is published: compiles the sources.
import { readFileSync } from "node:fs";
import type { TestProject } from "vitest/node";
import { build, whyStale } from "../../scripts/build/build.mjs";
import { thisMachine } from "./machine.ts";
import { STALE_MODULES } from "./own-process.ts";

/** What such a test imports. */
const NEEDS_COMPILED = /\/(own-process|[a-z]+-process|installed|example|round)\.ts"|\/build\.mjs"/;

export function setup({ vitest }: TestProject): void {
  if (process.env[STALE_MODULES] !== undefined) return;
  if (!vitest.state.getPaths().some((path) => NEEDS_COMPILED.test(readFileSync(path, "utf8")))) return;
  const reason = whyStale();
  if (reason === undefined) return;
  thisMachine.say(`compiling the sources: ${reason}`);
  if (!compiles()) process.env[STALE_MODULES] = "src/ was not compiled: run `npm run build`";
}

/** Another run that compiles at the same time may take the folder away. */
function compiles(): boolean {
  try {
    return build() === 0;
  } catch {
    return whyStale() === undefined;
  }
}
