import { chmodSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, expectTypeOf, it } from "vitest";
import { resolveConfig } from "../../src/config/resolve.ts";
import { fieldNames, wireName } from "../../src/config/schema.ts";
import type { CacheConfig } from "../../src/config/types.ts";
import { configFromYaml } from "../../src/config/yaml.ts";
import { yamlFolder } from "./file.ts";
import { configErrorOf } from "./thrown.ts";

const { folder, file } = yamlFolder();

describe("values", () => {
  it("every field that a file can hold is parsed", () => {
    const path = file(`
kv_url: redis://u:p@h:1/2
default_ttl: .inf
key_prefix: "my app"
enable_fuzzy: true
tables:
  userOrders: { ttl: 60, tags: [a, "b c"] }
  "odd.name": {}
enable_metrics: false
metrics_retention_days: 30
near_cache: { max_entries: 5 }
operation_timeout: 0.5
connect_timeout: 10
pool_size: 4
circuit_breaker:
  failure_threshold: 3
compression:
  threshold_bytes: 10
  algorithm: gzip
stale_if_error: 3600
stale_while_revalidate: 0.5
load_limit: 90
ttl_jitter: 0.1
serialization: json
`);
    expect(configFromYaml(path)).toEqual({
      kvUrl: "redis://u:p@h:1/2",
      defaultTtl: Number.POSITIVE_INFINITY,
      keyPrefix: "my app",
      enableFuzzy: true,
      tables: { userOrders: { ttl: 60, tags: ["a", "b c"] }, "odd.name": {} },
      enableMetrics: false,
      metricsRetentionDays: 30,
      nearCache: { maxEntries: 5, maxBytes: 67_108_864, values: "copy" },
      operationTimeout: 0.5,
      connectTimeout: 10,
      poolSize: 4,
      circuitBreaker: { failureThreshold: 3, resetTimeout: 30 },
      compression: { thresholdBytes: 10, algorithm: "gzip" },
      staleIfError: 3600,
      staleWhileRevalidate: 0.5,
      loadLimit: 90,
      ttlJitter: 0.1,
      serialization: "json",
    });
  });

  it("Infinity can be written as in code, and stays text in quotes", () => {
    expect(configFromYaml(file("default_ttl: Infinity"))).toEqual({ defaultTtl: Number.POSITIVE_INFINITY });
    expect(configFromYaml(file('key_prefix: "Infinity"'))).toEqual({ keyPrefix: "Infinity" });
  });

  it.each(["", "\n\n", "# nothing but a comment\n", "---\n", "---\n...\n", "~", "{}", "\ufeff"])(
    "an empty file (%j) means the defaults",
    (content) => {
      const given = configFromYaml(file(content));
      expect(given).toEqual({});
      expect(resolveConfig(given)).toEqual(resolveConfig({}));
    },
  );

  it("JSON, other line endings and a byte order mark are accepted too", () => {
    expect(configFromYaml(file('{ "pool_size": 2, "tables": { "a": { "ttl": 1 } } }'))).toEqual({
      poolSize: 2,
      tables: { a: { ttl: 1 } },
    });
    expect(configFromYaml(file("\ufeffpool_size: 2\r\ndefault_ttl: 3\r\n"))).toEqual({
      poolSize: 2,
      defaultTtl: 3,
    });
  });

  it("anchors and aliases work in reasonable numbers", () => {
    const path = file("tables:\n  a: &t { ttl: 5 }\n  b: *t\n");
    expect(configFromYaml(path)).toEqual({ tables: { a: { ttl: 5 }, b: { ttl: 5 } } });
  });

  it("a table named __proto__ is a table and nothing else", () => {
    const { tables } = configFromYaml(file("tables:\n  __proto__: { ttl: 5 }\n"));
    expect(Object.keys(tables ?? {})).toEqual(["__proto__"]);
    expect(({} as { ttl?: number }).ttl).toBeUndefined();
  });

  it("the result is a configuration", () => {
    expectTypeOf(configFromYaml).returns.toExtend<CacheConfig>();
  });
});

describe("files that cannot be read", () => {
  it("a missing file", () => {
    const error = configErrorOf(() => configFromYaml(join(folder, "none.yaml")));
    expect(error.code).toBe("CONFIG_UNREADABLE");
    expect(error.message).toBe(`cannot read "${join(folder, "none.yaml")}": it does not exist`);
    expect(configErrorOf(() => configFromYaml(join(file(""), "below.yaml"))).message).toContain(
      "it does not exist",
    );
  });

  it("a directory", () => {
    const error = configErrorOf(() => configFromYaml(folder));
    expect(error.code).toBe("CONFIG_UNREADABLE");
    expect(error.message).toBe(`cannot read "${folder}": it is a directory`);
  });

  it("a file owned by another user", () => {
    const closed = join(folder, "closed");
    mkdirSync(closed, { mode: 0o700 });
    const path = file("pool_size: 2");
    chmodSync(path, 0o000);
    const privileged = process.geteuid?.() === 0;
    if (privileged) process.seteuid?.(65_534);
    try {
      const error = configErrorOf(() => configFromYaml(path));
      expect(error.code).toBe("CONFIG_UNREADABLE");
      expect(error.message).toBe(`cannot read "${path}": permission denied`);
    } finally {
      if (privileged) process.seteuid?.(0);
    }
  });

  it("bytes that are not UTF-8, and a file beyond the limit", () => {
    const bytes = file(new Uint8Array([0x61, 0x3a, 0x20, 0xff]));
    expect(configErrorOf(() => configFromYaml(bytes)).message).toBe(
      `${bytes}: must be UTF-8 text, got other bytes`,
    );
    const large = file(`# ${"x".repeat(256 * 1024)}`);
    expect(configErrorOf(() => configFromYaml(large)).message).toBe(
      `${large}: must be at most 262144 bytes, got 262146`,
    );
  });

  it.each([undefined, "", 5, null])("%j is not a path", (path) => {
    const error = configErrorOf(() => configFromYaml(path as string));
    expect(error.code).toBe("ARGUMENT_INVALID");
    expect(error.message).toContain("path must be the name of a YAML file");
  });
});

describe("files that are not valid YAML", () => {
  it.each([
    ["default_ttl: 5\n  pool_size: 3\n", "1:14", "a mapping or list where a key or value is expected"],
    ["default_ttl: 5\n pool_size: 3\n", "", ""],
    ['key_prefix: "open\n', "2:1", "a missing quote"],
    ["tables: { a: {}\n", "2:1", ""],
    ["default_ttl: 5\ndefault_ttl: 6\n", "2:1", 'the key "default_ttl" is already in this mapping'],
    ["tables:\n  a: {}\n  a: {}\n", "3:3", 'the key "a" is already in this mapping'],
    ["tables:\n\ta: {}\n", "2:1", "a tab in the indentation"],
    ["key_prefix: @app\n", "1:13", "a value that must be quoted"],
    ["key_prefix: *app\n", "1:13", "an alias without an anchor"],
    ["key_prefix: !custom app\n", "1:13", "an unknown or mismatched tag"],
    ["pool_size: 1\n---\npool_size: 2\n", "2:1", "a second document"],
    ["? { a: b }\n: 5\n", "1:3", "a key that is not plain text"],
    [`tables: [&a 1${", *a".repeat(101)}]\n`, "1:416", "too many aliases"],
    ['key_prefix: "\\q"\n', "1:14", "an unknown escape"],
  ])("%j", (content, position, reason) => {
    const path = file(content);
    const error = configErrorOf(() => configFromYaml(path));
    expect(error.code).toBe("CONFIG_UNREADABLE");
    expect(error.message).toContain(`${path}:${position}`);
    expect(error.message).toContain("not valid YAML");
    expect(error.message).toContain(reason);
  });

  it("an alias bomb is rejected immediately", () => {
    const levels = Array.from(
      { length: 9 },
      (_, at) => `  t${at + 1}: &t${at + 1} [${Array(10).fill(`*t${at}`).join(", ")}]`,
    );
    const path = file(`tables:\n  t0: &t0 [x]\n${levels.join("\n")}\n`);
    const error = configErrorOf(() => configFromYaml(path));
    expect(error.code).toBe("CONFIG_UNREADABLE");
    expect(error.message).toBe(`${path}: its aliases expand to too much data`);
  });

  it("an alias of an enclosing node is rejected", () => {
    expect(configErrorOf(() => configFromYaml(file("tables: &t\n  a: *t\n"))).message).toContain(
      'unknown field "tables.a.a"',
    );
  });

  it.each([
    ["lists", "[".repeat(65)],
    ["mappings", "{ a: ".repeat(65)],
    ["closed lists", "[".repeat(70) + "]".repeat(70)],
    ["list items", `\n${"- ".repeat(70)}x`],
    ["keys", `\n${"? ".repeat(70)}x`],
    ["endless lists", "[".repeat(100_000)],
  ])("endless nesting of %s is rejected", (_, content) => {
    const error = configErrorOf(() => configFromYaml(file(`tables: ${content}`)));
    expect(error.code).toBe("CONFIG_UNREADABLE");
    expect(error.message).toMatch(/:\d+:\d+: not valid YAML: nesting too deep$/);
  });

  it("thousands of tables are parsed in little time", () => {
    const tables = Array.from({ length: 10_000 }, (_, at) => `  t${at}: {}`);
    expect(Object.keys(configFromYaml(file(`tables:\n${tables.join("\n")}`)).tables ?? {})).toHaveLength(
      10_000,
    );
  });

  it("any text is either a configuration or a ConfigError", () => {
    const piece = fc.constantFrom(
      "default_ttl",
      "tables",
      ":",
      " ",
      "\n",
      "  ",
      "- ",
      "{",
      "}",
      "[",
      "]",
      "&a ",
      "*a",
      "'",
      '"',
      "|",
      ">",
      "!",
      "%",
      "@",
      "5",
      "~",
      "?",
    );
    const content = fc.oneof(
      fc.array(fc.nat(0xd7ff), { maxLength: 30 }).map((units) => String.fromCharCode(...units)),
      fc.array(piece, { maxLength: 20 }).map((pieces) => pieces.join("")),
    );
    fc.assert(
      fc.property(content, (text) => {
        const path = file(text);
        try {
          configFromYaml(path);
        } catch {
          configErrorOf(() => configFromYaml(path));
        }
      }),
      { numRuns: 300 },
    );
  });
});

describe("files that are not a configuration", () => {
  it.each([
    ["- a\n- b\n", "an array of 2"],
    ["just text", '"just text"'],
    ["5", "5"],
    ["redis://u:hush@h", '"redis://***@h"'],
  ])("%j is not a mapping", (content, arrived) => {
    const path = file(content);
    const error = configErrorOf(() => configFromYaml(path));
    expect(error.code).toBe("CONFIG_INVALID");
    expect(error.message).toBe(`${path}:1:1: the file must be a mapping of fields, got ${arrived}`);
  });

  it.each([
    ["pool_size: 1\ndefaultTtl: 5\n", "2:1", 'unknown field "defaultTtl": did you mean "default_ttl"?'],
    ["defualt_ttl: 5\n", "1:1", 'unknown field "defualt_ttl": did you mean "default_ttl"?'],
    [
      "circuit_breaker:\n  failureThreshold: 5\n",
      "2:3",
      'unknown field "circuit_breaker.failureThreshold": did you mean "failure_threshold"?',
    ],
    ["tables:\n  users: { tll: 5 }\n", "2:12", 'unknown field "tables.users.tll": did you mean "ttl"?'],
    ["wibble: 5\n", "1:1", `unknown field "wibble": use one of ${fieldNames().map(wireName).join(", ")}`],
    ["1: 5\n", "1:1", 'unknown field "1": use one of '],
    ["<<: { pool_size: 5 }\n", "1:1", 'unknown field "<<": use one of '],
  ])("%j has an unknown key", (content, position, reason) => {
    const path = file(content);
    const error = configErrorOf(() => configFromYaml(path));
    expect(error.code).toBe("CONFIG_UNKNOWN_FIELD");
    expect(error.message).toContain(`${path}:${position}`);
    expect(error.message).toContain(reason);
  });

  it("a mistake behind an alias or in a list is shown at its line", () => {
    const path = file("tables:\n  a: &t\n    ttl: 0\n  b: *t\n");
    expect(configErrorOf(() => configFromYaml(path)).message).toContain(`${path}:3:5: tables.a.ttl must be`);
    const shared = file("near_cache: &n\n  max_entries: 5\ncircuit_breaker: *n\n");
    expect(configErrorOf(() => configFromYaml(shared)).message).toContain(
      `${shared}:2:3: unknown field "circuit_breaker.max_entries"`,
    );
    const list = file("tables:\n  a:\n    tags:\n      - x\n      - 7\n");
    expect(configErrorOf(() => configFromYaml(list)).message).toContain(
      `${list}:5:9: tables.a.tags[1] must be`,
    );
  });
});

describe("credentials", () => {
  it.each([
    ["kv_url: redis://u:Zq9@h:port\n"],
    ["kv_url: [redis://u:Zq9@h\n"],
    ['kv_url: "redis://u:Zq9"Zq9@h"\n'],
    ["kv_url: redis://u:Zq9@h\n  Zq9: x\n"],
    ["kv_url: redis://u:Zq9#@h\n"],
    ["kv_url: redis://u:Zq9: Zq9@h\n"],
    ["kv_url: @redis://u:Zq9@h\n"],
    ["kv_url: |redis://u:Zq9@h\n"],
    ["kv_url: !redis://u:Zq9@h x\n"],
    ["redis://u:Zq9@h: 5\nredis://u:Zq9@h: 5\n"],
    ["redis://u:Zq9@h: 5\n"],
    ["default_ttl: redis://u:Zq9@h\n"],
    ["kv_url: redis://u:Zq9@h\n}\n"],
    ["redis://u:Zq9@h"],
  ])("%j is rejected without showing its password", (content) => {
    const error = configErrorOf(() => configFromYaml(file(content)));
    expect(`${error.message} ${error.hint} ${String(error.cause)}`).not.toContain("Zq9");
  });
});
