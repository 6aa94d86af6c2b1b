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

describe('import "xcache"', () => {
  beforeAll(() => {
    expect(whyStale(), "dist does not match src: run `npm run build`").toBeUndefined();
  });

  it("reads few files and few bytes", () => {
    const { files } = readWith("index.js");
    expect(files.size).toBeLessThanOrEqual(2);
    expect(bytesOf(files)).toBeLessThan(335_000);
  });

  it("imports no package and no part of Node", () => {
    expect([...readWith("index.js").foreign]).toEqual([]);
  });

  it("contains no expression with a class of Unicode, which V8 would check", () => {
    const [, text = ""] =
      [...readWith("index.js").files].find(([path]) => path.endsWith("chunk/cache.js")) ?? [];
    const patterns: string[] = [];
    const visit = (node: unknown): void => {
      if (typeof node !== "object" || node === null) return;
      if ("regex" in node) patterns.push((node.regex as { readonly pattern: string }).pattern);
      for (const below of Object.values(node)) visit(below);
    };
    visit(parseAst(text));
    expect(patterns.length).toBeGreaterThan(10);
    expect(patterns.filter((pattern) => /\\[pP]\{/.test(pattern))).toEqual([]);
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

  it.each([
    ["leases and stamps, until a shared store is used", "store", "class SharedStore"],
    ["the outbox, until a shared store is used", "store", "class Outbox"],
    ["the encoding of values, until a shared store is used", "store", "class ByteWriter"],
    ["encryption, until a shared store is used", "store", "class HiddenNames"],
    ["the analysis of SQL, until a database session is used", "sql", "function statementsIn"],
    [
      "the adapters of databases, until a dependency is wrapped",
      "cached-dependency",
      "class WatchedConnection",
    ],
    ["the activity of all processes, until it is asked for", "insight", "function fleetActivity"],
    ["the sending of alerts, until there is a message", "alerts", "class WebhookDestination"],
    ["compression, until a shared store is used", "store", "brotliCompressSync"],
    ["the ring of memcached, until a store of that kind is used", "memcached", "class Ring"],
  ])("leaves %s", (_, name, part) => {
    const { files } = readWith("index.js");
    expect(readFileSync(join(DIST, `chunk/${name}.js`), "utf8")).toContain(part);
    expect([...files.values()].filter((text) => text.includes(part))).toEqual([]);
  });

  it("reads two more files for the first cache on Redis", () => {
    const before = readWith("index.js").files;
    const redis = [...readWith("chunk/store.js").files.keys(), ...readWith("chunk/kv.js").files.keys()];
    const more = new Set(redis.filter((path) => !before.has(path)));
    expect([...more].map((path) => path.slice(DIST.length + 1)).toSorted()).toEqual([
      "chunk/kv.js",
      "chunk/store.js",
    ]);
  });

  it("leaves sentinels and clusters until an address names them", () => {
    const { files } = readWith("chunk/kv.js");
    for (const part of ["class ClusterServers", "class SentinelServer"]) {
      expect(readFileSync(join(DIST, "chunk/kv-servers.js"), "utf8")).toContain(part);
      expect([...files.values()].filter((text) => text.includes(part))).toEqual([]);
    }
    const own = [...readWith("chunk/kv-servers.js").files.keys()].map((path) => path.slice(DIST.length + 1));
    expect(own).toContain("chunk/kv.js");
  });

  it("imports only node:net for Redis, which connects", () => {
    const { foreign } = readWith("chunk/kv.js");
    expect([...foreign]).toEqual(["node:net"]);
  });

  it("loads only these parts of Node, as do a first read and write in memory", () => {
    const program = `
      const parts = () => process.moduleLoadList.filter((name) => /^NativeModule (?!internal\\/)/.test(name)).map((name) => name.slice(13));
      const seen = new Set(parts());
      const more = () => parts().filter((name) => !seen.has(name) && seen.add(name)).toSorted();
      const { XCache } = await import(${JSON.stringify(pathToFileURL(join(DIST, "index.js")).href)});
      const imported = more();
      const cache = new XCache({ kvUrl: "memory://" });
      await cache.get("key");
      const read = more();
      await cache.set("key", 1);
      console.log(JSON.stringify({ imported, read, isWriting: more().includes("crypto") }));
      await cache.disconnect();
    `;
    const folder = mkdtempSync(join(runFolder(), "first-read-"));
    const path = join(folder, "program.mjs");
    writeFileSync(path, program);
    const { imported, read, isWriting } = JSON.parse(
      execFileSync(process.execPath, [path], { encoding: "utf8" }),
    ) as { readonly imported: string[]; readonly read: string[]; readonly isWriting: boolean };
    const cheap = new Set(["async_hooks", "diagnostics_channel", "events", "util/types"]);
    expect(imported.filter((name) => !cheap.has(name))).toEqual([]);
    expect(read).toEqual([]);
    expect(isWriting).toBe(true);
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
