// Servers restricted by ACL rules or renamed commands: what still works, and what is reported about the rest.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { CacheConfig } from "../../../src/config/types.ts";
import { BackendError, UnsupportedError } from "../../../src/core/errors.ts";
import { XCache } from "../../../src/xcache.ts";
import { bulk, FakeServer, greet } from "../../support/kv/fake-server.ts";
import { opened } from "../../support/kv/opened.ts";
import { isRedis6, type RedisServer, startRedis } from "../../support/redis.ts";
import { startCluster } from "../../support/redis-cluster.ts";
import { until } from "../../support/until.ts";

interface Row {
  /** As named on the page. */
  readonly without: string;
  /** Commands to disable by renaming. */
  readonly commands: readonly string[];
  /** ACL rules that forbid it; none: ACL rules cannot. */
  readonly rules?: readonly string[];
  /** What is reported as missing; none: nothing is lost. */
  readonly reported?: readonly string[];
  /** Whether keys can be listed. Default: true. */
  readonly lists?: boolean;
  /** Whether the server pushes changes. Default: true. */
  readonly pushes?: boolean;
}

const ROWS: readonly Row[] = [
  { without: "nothing", commands: [], rules: ["+@all"] },
  { without: "`HELLO`", commands: ["HELLO"], reported: ["HELLO"], pushes: false },
  {
    without: "`CLIENT TRACKING`",
    commands: [],
    rules: ["-client|tracking"],
    reported: ["CLIENT TRACKING"],
    pushes: false,
  },
  {
    without: "`CLIENT`",
    commands: ["CLIENT"],
    rules: ["-client"],
    reported: ["CLIENT TRACKING"],
    pushes: false,
  },
  { without: "`INFO`", commands: ["INFO"], rules: ["-info"], reported: ["INFO"] },
  { without: "`TIME`", commands: ["TIME"], rules: ["-time"], reported: ["TIME"] },
  {
    without: "`EVAL`, `EVALSHA`",
    commands: ["EVAL", "EVALSHA"],
    rules: ["-eval", "-evalsha"],
    reported: ["EVAL"],
  },
  { without: "`EVALSHA`", commands: ["EVALSHA"], rules: ["-evalsha"], reported: ["EVAL"] },
  { without: "`SCRIPT`", commands: ["SCRIPT"], rules: ["-script"] },
  { without: "`SCAN`", commands: ["SCAN"], rules: ["-scan"], reported: ["SCAN"], lists: false },
  { without: "`UNLINK`", commands: ["UNLINK"], rules: ["-unlink"] },
  { without: "`GETDEL`", commands: ["GETDEL"], rules: ["-getdel"] },
  {
    without: "`GETDEL`, `EVAL`, `EVALSHA`",
    commands: ["GETDEL", "EVAL", "EVALSHA"],
    rules: ["-getdel", "-eval", "-evalsha"],
    reported: ["EVAL"],
  },
];

const CONFIG: CacheConfig = { operationTimeout: 2, connectTimeout: 2, nearCache: true };

let caches: XCache[] = [];
async function closeAll(): Promise<void> {
  for (const cache of caches) await cache.disconnect();
  caches = [];
}
afterEach(closeAll);

function open(kvUrl: string, errors: Error[] = [], config: CacheConfig = {}): XCache {
  const cache = new XCache({ kvUrl, ...CONFIG, ...config });
  cache.on("error", ({ error }) => errors.push(error));
  caches.push(cache);
  return cache;
}

async function exercise(kvUrl: string, { reported = [], lists = true, pushes = true }: Row): Promise<void> {
  const errors: Error[] = [];
  const [mine, other] = [open(kvUrl, errors), open(kvUrl)];
  await mine.connect();
  expect(errors.map(({ message }) => / allow ([A-Z ]+): /.exec(message)?.[1])).toEqual(reported);
  for (const error of errors) expect(error).toBeInstanceOf(UnsupportedError);

  await mine.set("a", 1, { tags: ["t"] });
  for (let read = 0; read < 3; read++) expect([await mine.get("a"), await other.get("a")]).toEqual([1, 1]);
  let loads = 0;
  const load = (): number => ++loads;
  const loaded = await Promise.all(
    [mine, other, mine].map((one) => one.getOrSet("c", load, { tags: ["t"] })),
  );
  expect([loaded, loads, await other.getOrSet("c", load)]).toEqual([[1, 1, 1], 1, 1]);
  expect((await other.getMany(["a", "c", "none"])).size).toBe(2);
  await other.invalidateTags("t");
  await until(async () => (await mine.get("a")) === undefined, { what: "it is seen", timeoutMs: 2_000 });
  expect(await mine.getOrSet("c", load)).toBe(2);
  await mine.set("a", 2);
  expect(await other.delete("a")).toBe(1);
  expect(await other.delete("a")).toBe(0);
  if (lists) {
    expect(await mine.invalidatePattern("c*")).toBe(1);
    expect(await mine.getStats()).toMatchObject({ totalKeys: 0 });
  } else await expect(mine.invalidatePattern("c*")).rejects.toBeInstanceOf(BackendError);
  await mine.clear();
  expect(await other.get("c")).toBeUndefined();

  expect(errors).toHaveLength(reported.length);
  expect(await mine.health()).toBe(true);
  const { status, checks } = await mine.detailedHealthCheck();
  expect(status).toBe(reported.length === 0 ? "healthy" : "degraded");
  expect(checks.find(({ name }) => name === "restrictions")).toEqual({
    name: "restrictions",
    ok: reported.length === 0,
    detail: reported.length === 0 ? "none" : errors.map(({ message }) => message).join("; "),
  });
  await using backend = opened(kvUrl);
  expect(await backend.describe()).toMatchObject({ tracking: pushes });
  await closeAll();
}

/** Where `set` cannot succeed. */
async function expectUnhealthy(kvUrl: string, words: string): Promise<void> {
  const cache = open(kvUrl);
  await expect(cache.set("k", 1)).rejects.toThrow(words);
  expect(await cache.health()).toBe(false);
  const { status, checks } = await cache.detailedHealthCheck();
  expect(status).toBe("unhealthy");
  expect(checks[0]).toMatchObject({ name: "store", ok: false, detail: expect.stringContaining(words) });
  await closeAll();
}

it("the documentation page has these rows, and says where a feature is lost", () => {
  const page = readFileSync(join(import.meta.dirname, "../../../docs/operations/redis.md"), "utf8");
  const section = /## Restricted servers\n(.*?)\n## /s.exec(page)?.[1] ?? "";
  const rows = [...section.matchAll(/^\| (`.*?) \| (.*) \|$/gm)].map(([, without, text = ""]) => ({
    without,
    isWhole: text.startsWith("works fully"),
  }));
  const taken = ROWS.filter(({ without }) => without !== "nothing");
  expect(rows).toEqual(taken.map(({ without, reported }) => ({ without, isWhole: reported === undefined })));
});

describe("a user that may not use", () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(() => server.stop());

  it.each(ROWS.filter(({ rules }) => rules !== undefined))("$without", async (row) => {
    // Its rules cannot forbid a subcommand, and it has no GETDEL anyway.
    if (isRedis6() && row.rules?.some((rule) => /[|]|getdel/.test(rule))) return;
    await server.cli("FLUSHALL");
    await server.cli("SCRIPT", "FLUSH");
    await server.cli("ACL", "DELUSER", "app");
    await server.cli("ACL", "SETUSER", "app", "on", ">pw", "~*", "+@all", ...row.rules!);
    await exercise(server.url.replace("://", "://app:pw@"), row);
  });

  it.each([
    ["`SET`", ["-set"]],
    ["`SET` and `INFO`", ["-set", "-info"]],
    ["the keys of the cache", ["resetkeys", "~elsewhere:*"]],
  ])("%s is not healthy", async (_, rules) => {
    await server.cli("FLUSHALL");
    // Creates the namespace on the server beforehand.
    await open(server.url).set("k", 0);
    await closeAll();
    await server.cli("ACL", "DELUSER", "app");
    await server.cli("ACL", "SETUSER", "app", "on", ">pw", "~*", "+@all", ...rules);
    await expectUnhealthy(server.url.replace("://", "://app:pw@"), "NOPERM");
  });

  it("neither scripts nor WATCH is not healthy: it loads without storing, which is reported once", async () => {
    await server.cli("FLUSHALL");
    await server.cli("ACL", "DELUSER", "app");
    await server.cli("ACL", "SETUSER", "app", "on", ">pw", "~*", "+@all", "-@scripting", "-watch");
    const errors: Error[] = [];
    const kvUrl = server.url.replace("://", "://app:pw@");
    const cache = open(kvUrl, errors);
    for (const expected of [1, 2]) expect(await cache.getOrSet("k", () => expected)).toBe(expected);
    const restrictions = errors.filter((error) => error instanceof UnsupportedError);
    expect(restrictions.map(({ message }) => message)).toEqual([
      expect.stringContaining("EVAL"),
      expect.stringContaining("WATCH"),
    ]);
    await expectUnhealthy(kvUrl, "NOPERM");
  });

  it("a command gets it reported as missing only until it is allowed", async () => {
    await server.cli("ACL", "SETUSER", "app", "on", ">pw", "~*", "+@all", "-scan", "-eval");
    const cache = open(server.url.replace("://", "://app:pw@"));
    cache.on("error", () => {});
    expect((await cache.detailedHealthCheck()).status).toBe("degraded");
    await server.cli("ACL", "SETUSER", "app", "+@all");
    await server.cli("CLIENT", "KILL", "USER", "app");
    const isHealthy = async (): Promise<boolean> => (await cache.detailedHealthCheck()).status === "healthy";
    await until(isHealthy, { what: "it is connected again" });
  });
});

describe("a server that is out of memory", () => {
  it("is not healthy until there is room again", async () => {
    await using server = await startRedis({ maxmemory: "100mb" });
    await open(server.url).set("k", 0);
    await closeAll();
    await server.cli("CONFIG", "SET", "maxmemory", "1");
    await expectUnhealthy(server.url, "OOM");
    await server.cli("CONFIG", "SET", "maxmemory", "100mb");
    expect(await open(server.url).health()).toBe(true);
    await closeAll();
  });
});

describe("a replica", () => {
  it("is recognized without INFO", async () => {
    await using master = await startRedis();
    await using replica = await startRedis({
      args: ["--replicaof", "127.0.0.1", String(master.port), "--rename-command", "INFO", ""],
    });
    await using backend = opened(replica.url);
    await expect(backend.connect()).rejects.toThrow("is a replica");
  });
});

describe("a server whose INFO names no run id", () => {
  it("is reported: its restarts cannot be noticed", async () => {
    await using server = await FakeServer.start((command, client) =>
      command[0] === "INFO" ? bulk("redis_version:7.4.0\r\nrole:master\r\n") : greet(command, client),
    );
    const errors: Error[] = [];
    await open(`redis://127.0.0.1:${server.port}`, errors).connect();
    expect(errors).toEqual([expect.any(UnsupportedError)]);
    expect(errors[0]?.message).toContain("restarts from old snapshots and failovers go unnoticed");
    await closeAll();
  });
});

describe("a server without HELLO", () => {
  it("accepts a user, a password alone and a database", async () => {
    const args = ["--rename-command", "HELLO", ""];
    await using server = await startRedis({ args, requirepass: "pw" });
    await server.cli("ACL", "SETUSER", "app", "on", ">secret", "~*", "+@all");
    for (const login of [":pw", "app:secret"]) {
      const cache = open(`redis://${login}@127.0.0.1:${server.port}/2`);
      await cache.set("k", login);
      expect(await cache.get("k")).toBe(login);
      expect(await server.cli("-n", "2", "EXISTS", "xcache:k")).toBe("1");
      await closeAll();
    }
    const wrong = open(`redis://app:other@127.0.0.1:${server.port}`);
    await expect(wrong.get("k")).rejects.toThrow("WRONGPASS");
    await closeAll();
  });
});

describe("a cluster without scripts", () => {
  it("loads each key once, however many processes ask at the same time", async () => {
    const acl = ["user default on nopass ~* +@all -eval -evalsha"];
    await using cluster = await startCluster({ replicas: 0, redis: { acl } });
    const processes = [open(cluster.url), open(cluster.url), open(cluster.url)];
    const loads = new Map<string, number>();
    const keys = Array.from({ length: 30 }, (_, at) => `k${at}`);
    const load = (key: string): number => {
      loads.set(key, (loads.get(key) ?? 0) + 1);
      return 1;
    };
    await Promise.all(
      processes.flatMap((one) => keys.map((key) => one.getOrSet(key, () => load(key), { tags: ["t"] }))),
    );
    expect([...loads.values()]).toEqual(keys.map(() => 1));
    await closeAll();
  });
});

describe("a server without", () => {
  it.each(ROWS.filter(({ commands }) => commands.length > 0))("$without", async (row) => {
    if (isRedis6() && row.commands.includes("GETDEL")) return;
    const args = row.commands.flatMap((name) => ["--rename-command", name, ""]);
    await using server = await startRedis({ args });
    await exercise(server.url, row);
  });
});
