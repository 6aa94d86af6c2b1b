// Before tests that run the sources in processes of their own, or look at what is published: compiles the sources.
import { mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { join, resolve } from "node:path";
import type { TestProject } from "vitest/node";
import { build, whyStale } from "../../scripts/build/build.mjs";
import { thisMachine } from "./machine.ts";
import { STALE_MODULES } from "./own-process.ts";

/** What such a test imports. */
const NEEDS_COMPILED =
  /\/(own-process|[a-z]+-process|installed|installed-package|example|next-app|packed-package|round)\.ts"|\/build\.mjs"/;

export function setup({ vitest }: TestProject): void {
  if (process.env[STALE_MODULES] !== undefined) return;
  if (!vitest.state.getPaths().some((path) => NEEDS_COMPILED.test(readFileSync(path, "utf8")))) return;
  linkExamples();
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

/**
 * The examples are packages of their own. What `npm install` in one of their folders would link, once for all of them: only what is
 * published, since a link to the root would contain itself.
 */
function linkExamples(root = resolve(import.meta.dirname, "../..")): void {
  const place = join(root, "examples/node_modules/xcache");
  mkdirSync(place, { recursive: true });
  for (const name of ["dist", "package.json"]) {
    try {
      symlinkSync(join(root, name), join(place, name), "junction");
    } catch {
      // It is there already.
    }
  }
}
