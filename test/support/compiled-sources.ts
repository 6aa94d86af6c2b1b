// Has tests import what the sources were compiled to: Node loads it and calls from one file to another as it does for users, and
// the test runner neither transforms each source for each worker nor puts a lookup into each call.
import { mkdirSync, symlinkSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import type { ViteUserConfig } from "vitest/config";
import { whyStale } from "../../scripts/build/build.mjs";

const ROOT = resolve(import.meta.dirname, "../..");
const SOURCES = join(ROOT, "src");
const COMPILED = join(ROOT, ".cache/modules");

/**
 * The part of a project's configuration that does it: none where the compiled sources are not current, as after an edit and while
 * the runner watches for edits. No module can be replaced in such a project.
 */
export function compiledSources(): ViteUserConfig {
  const isWatching = !process.argv.includes("run");
  if (isWatching || whyStale(ROOT) !== undefined) return {};
  linkPublished();
  const resolveId = (id: string, importer: string | undefined): string | undefined => {
    if (importer === undefined || !/^\..*\.ts$/.test(id)) return undefined;
    const path = relative(SOURCES, join(dirname(importer), id));
    return path.startsWith("..") ? undefined : join(COMPILED, path.replace(/ts$/, "js"));
  };
  return {
    plugins: [{ name: "compiled-sources", enforce: "pre", resolveId }],
    test: { server: { deps: { external: [/\/\.cache\/modules\//] } } },
  };
}

/** Modules look for what is published two folders up. */
function linkPublished(): void {
  mkdirSync(join(ROOT, ".cache"), { recursive: true });
  try {
    symlinkSync(join(ROOT, "dist"), join(ROOT, ".cache/dist"), "junction");
  } catch {
    // It is there already.
  }
}
