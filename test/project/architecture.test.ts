// Checks src/ against the rules of its architecture, and the rules against what they must catch.
import { readdirSync, readFileSync } from "node:fs";
import { join, sep } from "node:path";
import { describe, expect, test } from "vitest";
import {
  badNames,
  forbiddenImports,
  importCycles,
  missingHeaders,
  type SourceFile,
  sourceFile,
  strayClockUses,
} from "../support/architecture.ts";

const ROOT = join(import.meta.dirname, "../..");
const manifest = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as {
  dependencies?: Record<string, string>;
  peerDependencies?: Record<string, string>;
};
const publishedPackages = Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies });

const sources: SourceFile[] = readdirSync(join(ROOT, "src"), { recursive: true, encoding: "utf8" })
  .filter((path) => path.endsWith(".ts"))
  .map((path) => sourceFile(path.split(sep).join("/"), readFileSync(join(ROOT, "src", path), "utf8")));

const file = (path: string, text = ""): SourceFile => sourceFile(path, text);

test("the sources are found", () => {
  expect(sources.map(({ path }) => path)).toContain("core/clock.ts");
});

describe("imports", () => {
  test("of src obey the order of its folders", () => {
    expect(forbiddenImports(sources, publishedPackages)).toEqual([]);
  });

  test.each([
    ["core/loader.ts", `import { x } from "../codec/frame.ts";`, "core may import itself"],
    ["core/loader.ts", `import type { X } from "../config/schema.ts";`, "core may import itself"],
    ["core/loader.ts", `import { pack } from "msgpackr";`, "npm packages appear only in"],
    ["codec/frame.ts", `export { x } from "../config/schema.ts";`, "codec may import itself, core"],
    ["backends/open.ts", `const m = await import("../codec/frame.ts");`, "backends may import itself, core"],
    [
      "functions/cached.ts",
      `import type { XCache } from "../xcache.ts";`,
      "functions may import itself, core",
    ],
    ["health/probe.ts", `type X = import("../metrics/window.ts").X;`, "health may import itself, core"],
    ["xcache.ts", `import { httpCache } from "./web/fetch.ts";`, "xcache.ts may import itself, core"],
    ["xcache.ts", `import * as v from "valibot";`, "npm packages appear only in"],
    ["web/fetch.ts", `import { main } from "../cli/main.ts";`, "web may import itself, core"],
    ["config/schema.ts", `import { x } from "left-pad";`, "left-pad is neither among the dependencies"],
    [
      "config/schema.ts",
      `import { x } from "@left/pad/deep";`,
      "@left/pad is neither among the dependencies",
    ],
    ["config/yaml.ts", `import { readFileSync } from "fs";`, "write node:fs"],
    [
      "core/keys.ts",
      `import { x } from "./frame/frame.ts";`,
      "the files of core/ may import itself within core/",
    ],
    [
      "core/frame/frame.ts",
      `import { x } from "../glob/glob.ts";`,
      "core/frame may import itself, the files of core/ within core/",
    ],
    [
      "core/resilience/guard.ts",
      `import { x } from "../invalidation/stamps.ts";`,
      "core/resilience may import itself, the files of core/, core/frame",
    ],
    ["core/near/near.ts", `import { x } from "../loading/loader.ts";`, "core/near may import itself"],
    ["core/loading/loader.ts", `import { x } from "../shared/lease.ts";`, "core/loading may import itself"],
    ["core/attic/x.ts", `import { x } from "../keys.ts";`, "core/attic has no level in core/ yet"],
    [
      "backends/disk/backend.ts",
      `import { x } from "../memory/store.ts";`,
      "backends/disk may import itself, backends/wire within backends/",
    ],
    [
      "backends/kv/resp/reader.ts",
      `import { x } from "../server/node.ts";`,
      "backends/kv/resp may import itself within backends/kv/",
    ],
    [
      "backends/kv/cluster/view.ts",
      `import { x } from "../sentinel/query.ts";`,
      "backends/kv/cluster may import itself, backends/kv/resp, backends/kv/server, backends/kv/commands within",
    ],
    [
      "backends/kv/commands/router.ts",
      `import { x } from "../client.ts";`,
      "backends/kv/commands may import itself",
    ],
    ["web/message/exchange.ts", `import { x } from "../protocol/vary.ts";`, "web/message may import itself"],
    [
      "web/node-http/node-message.ts",
      `import { x } from "../protocol/vary.ts";`,
      "web/node-http may import itself, web/message within web/",
    ],
    ["web/engine/engine.ts", `import { x } from "../fetch.ts";`, "web/engine may import itself"],
    [
      "db/pg/pool.ts",
      `import { x } from "../knex/client.ts";`,
      "db/pg may import itself, db/sql, db/tracking",
    ],
    [
      "metrics/recording/recorder.ts",
      `import { x } from "../history/history.ts";`,
      "metrics/recording may import itself, the files of metrics/ within metrics/",
    ],
    ["attic/thing.ts", `import { x } from "../core/clock.ts";`, "attic has no rule yet"],
  ])("from %s by %s are refused", (path, text, problem) => {
    const found = forbiddenImports([file(path, text)], ["valibot"]);
    expect(found).toHaveLength(1);
    expect(found[0]).toContain(problem);
  });

  test.each([
    ["core/loader.ts", `import { x } from "./clock.ts"; import { hash } from "node:crypto";`],
    ["codec/frame.ts", `import type { Payload } from "../core/record.ts"; import { x } from "./limit.ts";`],
    ["config/schema.ts", `import * as v from "valibot";`],
    [
      "config/schema.ts",
      `// import { x } from "../codec/frame.ts"\nexport const s = 'from "../codec/frame.ts"';`,
    ],
    ["xcache.ts", `import { x } from "./codec/frame.ts"; import { VERSION } from "./version.ts";`],
    ["web/fetch.ts", `import { XCache } from "../xcache.ts";`],
    ["core/near/near.ts", `import { x } from "../invalidation/stamps.ts"; import { y } from "../keys.ts";`],
    [
      "core/shared/lease.ts",
      `import { x } from "../near/near.ts"; import { y } from "../loading/loader.ts";`,
    ],
    [
      "backends/kv/backend.ts",
      `import { x } from "./cluster/view.ts"; import { y } from "../wire/socket.ts";`,
    ],
    ["web/fetch.ts", `import { x } from "./engine/engine.ts"; import { y } from "./message/exchange.ts";`],
    ["testing/index.ts", `import { memory } from "../backends/memory/store.ts";`],
  ])("from %s by %s are fine", (path, text) => {
    expect(forbiddenImports([file(path, text)], ["valibot"])).toEqual([]);
  });

  test("of src form no cycle", () => {
    expect(importCycles(sources)).toEqual([]);
  });

  test("that form a cycle are found, including type imports and long cycles", () => {
    const found = importCycles([
      file("core/a.ts", `import { b } from "./b.ts";`),
      file("core/b.ts", `import type { C } from "./deep/c.ts";`),
      file("core/deep/c.ts", `export * from "../a.ts";`),
      file("core/d.ts", `import { a } from "./a.ts"; import { b } from "./b.ts";`),
    ]);
    expect(found).toEqual(["core/a.ts -> core/b.ts -> core/deep/c.ts -> core/a.ts"]);
  });
});

describe("a source file", () => {
  test("starts with one line that says what it is", () => {
    expect(missingHeaders(sources)).toEqual([]);
    const wrong = ["", "export const x = 1;\n", "//\nexport {};\n", "/* a block comment */\n", "// short\n"];
    expect(missingHeaders(wrong.map((text) => file("core/x.ts", text)))).toHaveLength(wrong.length);
    expect(
      missingHeaders([file("cli/main.ts", "#!/usr/bin/env node\n// The command line program.\n")]),
    ).toEqual([]);
  });

  test("has a meaningful kebab-case name", () => {
    expect(badNames(sources)).toEqual([]);
    const wrong = [
      "core/keyUtils.ts",
      "core/Key.ts",
      "core/utils.ts",
      "helpers/x.ts",
      "core/common.ts",
      "core/misc.ts",
    ];
    expect(badNames(wrong.map((path) => file(path)))).toHaveLength(wrong.length);
  });

  test("takes time, timers and randomness from the clock", () => {
    expect(strayClockUses(sources)).toEqual([]);
  });

  test.each([
    "setTimeout(run, 5);",
    "const later = setInterval;",
    "globalThis.setTimeout(run, 5);",
    "const t = Date.now();",
    "const { now } = { now: performance.now };",
    "const r = Math.random();",
    "const d = new Date();",
    "const d = new Date;",
    "process.hrtime.bigint();",
    "AbortSignal.timeout(5);",
    `import { setTimeout as pause } from "node:timers/promises";`,
  ])("that says %s is refused outside the clock", (text) => {
    expect(strayClockUses([file("core/loader.ts", text)])).not.toEqual([]);
    expect(strayClockUses([file("core/clock.ts", text)])).toEqual([]);
  });

  test.each([
    "new Date(5); clock.now(); // Date.now()",
    `const s = "setTimeout(run, 5)";`,
    "interface Host { setTimeout(ms: number): void } host.setTimeout(5);",
  ])("that says %s is fine", (text) => {
    expect(strayClockUses([file("core/loader.ts", text)])).toEqual([]);
  });
});
