// The fields of --json, command by command. Scripts rely on them: a field may be added, none renamed or removed.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { COMMANDS } from "../../../src/cli/specs/table.ts";
import { cached, XCache } from "../../../src/index.ts";
import { jsonLines } from "./installed.ts";
import { sharedProcess } from "./shared-process.ts";
import { diskUrl, testFolder } from "./store.ts";

const xcache = sharedProcess();

const folder = testFolder();
const kvUrl = diskUrl(folder);

beforeAll(async () => {
  const cache = new XCache({ kvUrl, operationTimeout: 10 });
  await cache.set("user:1", { name: "Ada" }, { ttl: 600, tags: ["users"] });
  await cache.get("user:1");
  await cached(async (id: number) => id, { cache, name: "double", ttl: 600, tags: ["doubles"] })(1);
  await cache.delete("double(1)");
  await cache.disconnect();
  writeFileSync(join(folder, "lines.jsonl"), '{"key":"new","value":1}\n');
});

const MINUTE = {
  hit_rate: "number",
  total_hits: "number",
  total_misses: "number",
  total_sets: "number",
  total_deletes: "number",
  total_invalidations: "number",
  total_errors: "number",
  total_evictions: "number",
  total_store_hits: "number",
  total_stale_served: "number",
  total_loads: "number",
  total_coalesced: "number",
  total_operations: "number",
  active_seconds: "number",
  avg_response_time: "number",
  p50: "number",
  p95: "number",
  p99: "number",
  processes: "number",
};
const ENTRY = { key: "string", ttl_seconds: "number", age_seconds: "number", tags: ["string"] };
const REMOVAL = {
  matched: "number",
  approximate: "boolean",
  removed: "number",
  dry_run: "boolean",
  complete: "boolean",
};
const STORED = {
  read: "number",
  stored: "number",
  present: "number",
  expired: "number",
  last_line: "number",
  duration_seconds: "number",
  complete: "boolean",
};
const HEALTH = {
  status: "string",
  kv_connected: "boolean",
  checks: [{ name: "string", ok: "boolean", detail: "string" }],
  address: "string",
  latency_seconds: "number",
};
const STATS = {
  ...MINUTE,
  total_keys: "number",
  key_count: "number",
  total_memory_bytes: "number",
  memory_usage_mb: "number",
  approximate: "boolean",
  scope: "string",
  since: "string",
  uptime_seconds: "number",
  operations_per_second: "number",
  history: [{ ...MINUTE, at: "string" }],
};
const OPERATION = {
  count: "number",
  errors: "number",
  avg_response_time: "number",
  p50: "number",
  p95: "number",
  p99: "number",
};

/** The command line and the shape of each line it prints. */
const SHAPES: readonly (readonly [args: readonly string[], shape: unknown])[] = [
  [
    ["ping"],
    {
      address: "string",
      backend: "string",
      server: "null",
      version: "null",
      count: "number",
      latency_seconds: { least: "number", average: "number", most: "number" },
    },
  ],
  [["stats"], STATS],
  [["stats", "--watch", "--count", "1"], { at: "string", ...STATS }],
  [
    ["stats", "--functions"],
    {
      functions: [
        {
          name: "string",
          calls: "number",
          hits: "number",
          hit_rate: "number",
          loads: "number",
          coalesced: "number",
          stale_served: "number",
          errors: "number",
          avg_load_time: "number",
          p95_load_time: "number",
          ttl_seconds: "number",
          history: [{ at: "string", calls: "number", hits: "number", loads: "number" }],
        },
      ],
    },
  ],
  [["stats", "--processes"], { processes: "list" }],
  [["list"], { ...ENTRY, size_bytes: "number" }],
  [["search", "user"], { key: "string", score: "number" }],
  [["get", "user:1"], { ...ENTRY, type: "string", value_bytes: "number", value: { name: "string" } }],
  [["tags", "user:1"], { key: "string", tags: ["string"] }],
  [["health"], HEALTH],
  [
    ["health", "--detailed"],
    {
      ...HEALTH,
      connection_pool: {
        size: "number",
        in_use: "number",
        idle: "number",
        waiting: "number",
        utilization: "number",
      },
      circuit_breaker: { state: "string", failures: "number", opened_at: "null", next_probe_at: "null" },
      performance_metrics: {
        hit_rate: "number",
        avg_response_time: "number",
        total_operations: "number",
        error_rate: "number",
        p50: "number",
        p95: "number",
        p99: "number",
        operations_per_second: "number",
        by_operation: { get: OPERATION, set: OPERATION },
        connection_failures: "number",
        circuit_breaker_open: "boolean",
        pool_utilization: "number",
        memory_usage: "number",
        eviction_rate: "number",
      },
    },
  ],
  [["doctor"], { ok: "boolean", settings: "list", findings: "list" }],
  [["advise"], { advice: "list" }],
  [
    ["ui", "--no-open", "--idle", "1ms"],
    { url: "string", address: "string", writes: "boolean", values: "boolean" },
  ],
  [
    ["export", "-"],
    {
      key: "string",
      value: { name: "string" },
      ttl_seconds: "number",
      expires_at: "string",
      tags: ["string"],
    },
  ],
  [
    ["export", join(folder, "out.jsonl")],
    { file: "string", exported: "number", duration_seconds: "number", complete: "boolean" },
  ],
  [["set", "k", "1"], { key: "string", type: "string", ttl_seconds: "number", tags: "list" }],
  [["delete", "k"], { requested: "number", deleted: "number" }],
  [["invalidate", "--tags", "none", "--yes"], { tags: ["string"], ...REMOVAL }],
  [["invalidate", "--pattern", "none", "--yes"], { pattern: "string", ...REMOVAL }],
  [["invalidate", "--keys-from", "-", "--yes"], { requested: "number", ...REMOVAL }],
  [["warm", join(folder, "lines.jsonl")], STORED],
  [["import", join(folder, "lines.jsonl")], STORED],
  [["clear", "--dry-run"], { prefix: "string", namespace: "list", ...REMOVAL }],
  [
    ["extras", "monitoring"],
    {
      extras: ["string"],
      package_manager: "string",
      packages: ["string"],
      installed: "list",
      command: "string",
    },
  ],
  [["completion", "bash"], { shell: "string", script: "string" }],
  [["db", "feed", "--sql", "--table", "users"], { sql: "string" }],
  [["db", "feed", "--sql", "--connection", "mysql://localhost/shop"], { sql: "string" }],
];

/** The shape of a value: type names; for a list, that of its first item. */
function shapeOf(value: unknown, wanted: unknown): unknown {
  if (wanted === "list") return Array.isArray(value) ? "list" : typeof value;
  if (value === null) return "null";
  if (Array.isArray(value)) return value.slice(0, 1).map((item) => shapeOf(item, (wanted as unknown[])[0]));
  if (typeof value !== "object") return typeof value;
  const members = Object.entries(value).map(([name, member]) => [
    name,
    shapeOf(member, Reflect.get(Object(wanted), name)),
  ]);
  return Object.fromEntries(members);
}

test.each(SHAPES)("xcache %j --json prints the listed fields", async (args, shape) => {
  const ran = await xcache([...args, "--json"], { env: { XCACHE_KV_URL: kvUrl }, cwd: folder });
  expect(ran).toMatchObject({ code: 0, stderr: "" });
  const lines = jsonLines(ran);
  expect(lines).toHaveLength(1);
  expect(shapeOf(lines[0], shape)).toEqual(shape);
});

test("every command has its fields listed here", () => {
  const listed = new Set(SHAPES.map(([[name]]) => name));
  expect(COMMANDS.map(({ name }) => name).filter((name) => !listed.has(name))).toEqual([]);
});

test("doctor's settings and findings have these fields", async () => {
  const [row] = jsonLines<{ settings: unknown[]; findings: unknown[] }>(
    await xcache(["doctor", "--json"], { env: { XCACHE_KV_URL: kvUrl } }),
  );
  for (const setting of row?.settings ?? []) {
    // A field that has no value by default is null.
    expect(setting).toHaveProperty("value");
    expect({ ...(setting as object), value: "any" }).toEqual({
      name: expect.stringMatching(/^[a-z_]+$/),
      value: "any",
      origin: expect.stringMatching(/^(flag|env|file|default)$/),
    });
  }
  const text = expect.any(String);
  for (const finding of row?.findings ?? []) {
    expect(finding).toEqual({
      name: text,
      state: expect.stringMatching(/^(ok|warning|problem)$/),
      detail: text,
      advice: null,
    });
  }
});

/** Every command with a mistake in it; the error is one JSON object on stderr. */
const MISTAKES: readonly (readonly [args: readonly string[], exitCode: number])[] = [
  [["ping", "--count", "0"], 2],
  [["stats", "--interval", "1s"], 2],
  [["stats", "--functions", "--processes"], 2],
  [["list", "--pattern", "[a"], 2],
  [["search"], 2],
  [["get", "nobody"], 1],
  [["tags", "nobody"], 1],
  [["health", "--unknown"], 2],
  [["doctor", "--config", "/nowhere.yaml"], 2],
  [["advise", "--since", "0"], 2],
  [["ui", "--port", "0"], 2],
  [["export", join(folder, "no/such/folder.jsonl")], 1],
  [["set", "k", '{"$type":"nothing"}'], 2],
  [["delete"], 2],
  [["invalidate", "--tags", "a"], 2],
  [["clear"], 2],
  [["warm", join(folder, "none.jsonl")], 2],
  [["import", join(folder, "none.jsonl")], 2],
  [["extras", "none"], 2],
  [["completion", "csh"], 2],
  [["db", "feed"], 2],
  [["db", "feed", "--check", "--connection", "mssql://localhost/shop"], 2],
];

test.each(MISTAKES)("xcache %j --json reports its mistake in these fields", async (args, exitCode) => {
  const { code, stdout, stderr } = await xcache([...args, "--json"], { env: { XCACHE_KV_URL: kvUrl } });
  expect([code, stdout]).toEqual([exitCode, ""]);
  expect(stderr.trimEnd().split("\n")).toHaveLength(1);
  expect(JSON.parse(stderr)).toEqual({
    error: {
      code: expect.stringMatching(/^[A-Z_]+$|^usage$|^failed$/),
      message: expect.stringMatching(/./),
      hint: expect.stringMatching(/./),
      exit_code: exitCode,
    },
  });
});

test("every command has a mistake listed here", () => {
  const listed = new Set(MISTAKES.map(([[name]]) => name));
  expect(COMMANDS.map(({ name }) => name).filter((name) => !listed.has(name))).toEqual([]);
});

test("a failing import prints its figures on stdout and its error on stderr", async () => {
  const { code, stdout, stderr } = await xcache(["import", "-", "--json"], {
    env: { XCACHE_KV_URL: kvUrl },
    input: '{"key":"k","value":1}\n{\n',
  });
  expect(code).toBe(1);
  expect(JSON.parse(stdout)).toMatchObject({ stored: 1, last_line: 1, complete: false });
  expect(JSON.parse(stderr)).toMatchObject({ error: { code: "failed", exit_code: 1 } });
});
