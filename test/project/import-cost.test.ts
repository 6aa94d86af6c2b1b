// What `import "xcache"` makes Node read, counted instead of timed: files, bytes and what must not be among them.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { parseAst } from "rollup/parseAst";
import { beforeAll, describe, expect, it } from "vitest";
import { whyStale } from "../../scripts/build/build.mjs";
import { yamlFolder } from "../config/file.ts";
import { runFolder } from "../support/run-folder.ts";

const DIST = join(import.meta.dirname, "../../dist");

/** Imports that are carried out before the module is, relative to it. */
function staticImports(text: string): readonly string[] {
  return parseAst(text).body.flatMap((statement) =>
    "source" in statement && statement.source ? [String(statement.source.value)] : [],
  );
}

/** What is read when a file of dist is imported: the text by file, and the names of what comes from elsewhere. */
function readWith(entry: string): { readonly files: Map<string, string>; readonly foreign: Set<string> } {
  const files = new Map<string, string>();
  const foreign = new Set<string>();
  const pending = [join(DIST, entry)];
  for (let path = pending.pop(); path !== undefined; path = pending.pop()) {
    if (files.has(path)) continue;
    const text = readFileSync(path, "utf8");
    files.set(path, text);
    for (const target of staticImports(text)) {
      if (target.startsWith(".")) pending.push(join(path, "..", target));
      else foreign.add(target);
    }
  }
  return { files, foreign };
}

const bytesOf = (files: Map<string, string>): number =>
  [...files.values()].reduce((sum, text) => sum + Buffer.byteLength(text), 0);

/** Parts of Node that take next to no time to load; core/node-parts.ts takes the others when they are needed. */
const CHEAP = ["async_hooks", "diagnostics_channel", "events", "os", "path", "url", "util/types"];

describe('import "xcache"', () => {
  beforeAll(() => {
    expect(whyStale(), "dist does not match src: run `npm run build`").toBeUndefined();
  });

  it("reads few files and few bytes", () => {
    const { files } = readWith("index.js");
    expect(files.size).toBeLessThanOrEqual(3);
    expect(bytesOf(files)).toBeLessThan(800_000);
  });

  it("needs no package, and no slow-loading Node modules", () => {
    const { foreign } = readWith("index.js");
    const cheap = new Set(CHEAP.map((name) => `node:${name}`));
    expect([...foreign].filter((name) => !cheap.has(name))).toEqual([]);
  });

  it.each([
    ["disk", "class Committer"],
    ["kv", "class RespReader"],
    ["memcached", "class MetaReader"],
  ])("leaves the code that talks to %s until a store of that kind is used", (store, part) => {
    const { files } = readWith("index.js");
    const file = join(DIST, `chunk/${store}.js`);
    expect(readFileSync(file, "utf8")).toContain(part);
    expect([...files.keys()]).not.toContain(file);
    expect([...files.values()].filter((text) => text.includes(part))).toEqual([]);
    expect([...files.values()].some((text) => text.includes(`import("./${store}.js")`))).toBe(true);
  });

  it("loads no slow Node modules for Redis before it connects", () => {
    // Node has loaded node:fs/promises for its own imports; node:net is what connects.
    const cheap = new Set([...CHEAP, "buffer", "fs/promises", "net"].map((name) => `node:${name}`));
    expect([...readWith("chunk/kv.js").foreign].filter((name) => !cheap.has(name))).toEqual([]);
  });

  it("does not load node:crypto for a first read in memory, only for a write", () => {
    const program = `
      import { XCache } from ${JSON.stringify(pathToFileURL(join(DIST, "index.js")).href)};
      const isLoaded = () => process.moduleLoadList.includes("NativeModule crypto");
      const cache = new XCache({ kvUrl: "memory://" });
      await cache.get("key");
      const before = isLoaded();
      await cache.set("key", 1);
      console.log(before, isLoaded());
      await cache.disconnect();
    `;
    const folder = mkdtempSync(join(runFolder(), "first-read-"));
    const path = join(folder, "program.mjs");
    writeFileSync(path, program);
    expect(execFileSync(process.execPath, [path], { encoding: "utf8" })).toBe("false true\n");
  });

  it("is avoided when the program only prints its version", () => {
    expect(bytesOf(readWith("cli/main.js").files)).toBeLessThan(4_000);
  });
});

const { file } = yamlFolder();

it("the YAML parser is loaded only when a file is read", () => {
  const program = `
    import { createRequire } from "node:module";
    import { XCache } from ${JSON.stringify(pathToFileURL(join(DIST, "index.js")).href)};
    const { cache } = createRequire(import.meta.url);
    const isLoaded = () => Object.keys(cache).some((name) => /[\\\\/]node_modules[\\\\/]yaml[\\\\/]/.test(name));
    const before = isLoaded();
    XCache.fromYaml(process.argv[1]);
    console.log(before, isLoaded());
  `;
  const args = ["--input-type=module", "-e", program, file("pool_size: 2\nkv_url: memory://")];
  expect(execFileSync(process.execPath, args, { encoding: "utf8" })).toBe("false true\n");
});
