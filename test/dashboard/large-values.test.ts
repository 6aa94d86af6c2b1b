// Large values: looking at them reads no more than is shown. Bytes are counted by a real Redis, memory by this process.
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { DiskBackend } from "../../src/backends/disk/backend.ts";
import { type CacheInside, insideOf } from "../../src/cache/inside.ts";
import { type DashboardOptions, dashboard } from "../../src/dashboard/index.ts";
import { type CacheConfig, XCache } from "../../src/index.ts";
import { exchange } from "../support/exchange.ts";
import { type RedisServer, startRedis } from "../support/redis.ts";
import { runFolder } from "../support/run-folder.ts";

const MB = 1_000_000;
const LARGE = 50 * MB;
/** Enough members that a container of them takes more than LITTLE to send. */
const LONG = 300_000;
/** Of containers whose names or contents take long to make. */
const MANY = 50_000;

let redis: RedisServer;
let directory: string;
beforeAll(async () => {
  redis = await startRedis();
  directory = mkdtempSync(join(runFolder(), "large-"));
});
afterAll(async () => {
  await redis.stop();
  rmSync(directory, { recursive: true, force: true });
});

let prefixes = 0;
const STORES: Readonly<Record<string, () => CacheConfig>> = {
  memory: () => ({ kvUrl: "memory://" }),
  redis: () => ({ kvUrl: redis.url }),
  disk: () => ({ backend: new DiskBackend({ directory, maxBytes: 1024 * MB }) }),
};

function opened(config: CacheConfig, options: Partial<DashboardOptions> = {}) {
  const cache = new XCache({ keyPrefix: `l${++prefixes}`, operationTimeout: 20, ...config });
  onTestFinished(() => cache.disconnect());
  const board = dashboard({ cache, authorize: () => true, ...options });
  const call = async <T>(name: string, body: unknown = {}): Promise<T> => {
    const request = new Request(`http://admin.example/api/${name}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    const text = await (await board.fetch(request)).text();
    return (
      name === "keys"
        ? text
            .trimEnd()
            .split("\n")
            .map((line) => JSON.parse(line))
        : JSON.parse(text)
    ) as T;
  };
  return { cache, board, call };
}

interface Shown {
  readonly type?: string;
  readonly bytes: number;
  readonly value?: {
    readonly type?: string;
    readonly text: string;
    readonly cut: boolean;
    readonly read: number;
    readonly of: number;
    readonly members?: number;
    readonly hidden?: string;
  };
}

const SENT = /total_net_output_bytes:(\d+)\r\n/;

/** The bytes that the server has sent meanwhile, and the most memory that this process has taken. */
async function costOf<T>(work: () => Promise<T>): Promise<{ result: T; sent: number; grown: number }> {
  const sent = async (): Promise<number> => {
    const peer = { port: redis.port, timeoutMs: 20_000 };
    const stats = await exchange(peer, "INFO stats\r\n", (reply) => SENT.test(reply));
    return Number(SENT.exec(stats)?.[1]);
  };
  const before = await sent();
  const held = memory();
  let most = held;
  const timer = setInterval(() => {
    most = Math.max(most, memory());
  }, 1);
  try {
    const result = await work();
    return { result, sent: (await sent()) - before, grown: Math.max(most, memory()) - held };
  } finally {
    clearInterval(timer);
  }
}

const memory = (): number => {
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
};

/** Two INFO replies, the exchange on new connections, records of the library, and 64 KiB of the value. */
const LITTLE = 0.4 * MB;
/** Far below the value, far above what a test needs otherwise. */
const LITTLE_MEMORY = 20 * MB;

async function listed(cache: XCache): Promise<readonly { key: string; type?: string }[]> {
  const found: { key: string; type?: string }[] = [];
  for await (const { entries } of cache.scan({ types: true })) found.push(...entries);
  return found;
}

describe.each(Object.keys(STORES))("on %s", (store) => {
  const settings = (): CacheConfig => (STORES[store] as () => CacheConfig)();

  it("a value of 50 MB is looked at without being read", { timeout: 120_000 }, async () => {
    const { cache, call } = opened(settings());
    const shown = dashboard({ cache, authorize: () => true, values: true });
    // Tags whose names do not fit into what a scan reads at first.
    const tags = Array.from({ length: 40 }, (_, at) => `a tag with a long name ${at}`);
    await cache.set("big", "y".repeat(LARGE), { tags });
    for (const [what, work] of Object.entries({
      inspect: () => cache.inspect("big"),
      ttl: () => cache.ttl("big"),
      exists: () => cache.exists("big"),
      tags: () => cache.tags("big"),
      explain: () => cache.explain("big"),
      scan: () => listed(cache),
      list: () => call("keys", { exact: "big" }),
      "a hidden value": () => call<Shown>("entry", { key: "big" }),
      "a shown value": async () =>
        (
          await shown.fetch(
            new Request("http://admin.example/api/entry", {
              method: "POST",
              headers: { "content-type": "application/json" },
              body: '{"key":"big"}',
            }),
          )
        ).json() as Promise<Shown>,
    })) {
      const { sent, grown } = await costOf<unknown>(work);
      expect([what, sent < LITTLE || sent]).toEqual([what, true]);
      expect([what, grown < LITTLE_MEMORY || grown]).toEqual([what, true]);
    }
    expect(await cache.inspect("big")).toMatchObject({ type: "string" });
    expect((await cache.inspect("big"))?.bytes).toBeGreaterThan(LARGE);
    expect(await listed(cache)).toMatchObject([{ key: "big", type: "string" }]);
    expect(await call("entry", { key: "big" })).not.toHaveProperty("value");
  });

  it("a shown value says how much is shown of how much, and more of it comes on request", {
    timeout: 120_000,
  }, async () => {
    const { cache, call } = opened(settings(), { values: true });
    await cache.set("text", "é".repeat(5 * MB));
    const first = (await call<Shown>("entry", { key: "text" })).value;
    expect(first).toMatchObject({ type: "string", cut: true });
    expect(first?.text).toMatch(/^é+$/);
    expect(first?.text.length).toBeLessThanOrEqual(64 * 1024);
    expect(first?.of).toBeGreaterThanOrEqual(store === "memory" ? 5 * MB : 10 * MB);
    expect(first?.read).toBeLessThanOrEqual(64 * 1024);
    const more = (await call<Shown>("entry", { key: "text", more: true })).value;
    expect(more?.text.length).toBeGreaterThan(first?.text.length ?? 0);
    expect(more?.text.length).toBeLessThanOrEqual(1024 * 1024);
  });

  it.each([
    ["list", () => Array.from({ length: LONG }, (_, at) => at), "array", "0,"],
    ["map", () => new Map(Array.from({ length: MANY }, (_, at) => [`k${at}`, at])), "map", "'k0' => 0"],
    ["set", () => new Set(Array.from({ length: MANY }, (_, at) => at)), "set", "0,"],
    [
      "object",
      () => Object.fromEntries(Array.from({ length: MANY }, (_, at) => [`k${at}`, { password: "p-1", at }])),
      "object",
      "[redacted]",
    ],
    ["nested", () => ({ deep: { list: Array.from({ length: LONG }, (_, at) => at) } }), "object", "list: ["],
    ["bytes", () => new Uint8Array(5 * MB).fill(65), "uint8array", "AAAA"],
    ["floats", () => new Float64Array(LONG), "float64array", "0,"],
  ])("the first members of a long %s are shown", { timeout: 120_000 }, async (kind, make, type, part) => {
    const { cache, call } = opened(settings(), { values: true });
    await cache.set("many", make());
    const { result, sent } = await costOf(() => call<Shown>("entry", { key: "many" }));
    expect(sent).toBeLessThan(LITTLE);
    expect(result.value).toMatchObject({ type, cut: true });
    expect(result.value?.text).toContain(part);
    expect(result.value?.text).not.toContain("p-1");
    const members = { list: LONG, map: MANY, set: MANY, object: MANY }[kind as string];
    if (members !== undefined) expect(result.value?.members).toBe(members);
    expect(await cache.inspect("many")).toMatchObject({ type });
  });
});

describe.each(["redis", "disk"])("stored otherwise, on %s", (store) => {
  const settings = (): CacheConfig => (STORES[store] as () => CacheConfig)();

  it("JSON text is shown as far as it was read, with secrets hidden", async () => {
    const { cache, call } = opened({ ...settings(), serialization: "json" }, { values: true });
    const users = Array.from({ length: 100_000 }, (_, at) => ({
      name: `user "${at}" {[`,
      password: `p-${at}`,
    }));
    await cache.set("users", { users, last: true });
    const { value } = await call<Shown>("entry", { key: "users" });
    expect(value).toMatchObject({ type: "object", cut: true });
    expect(value?.text).toContain('user "1" {[');
    expect(value?.text).not.toMatch(/p-\d/);
    expect(await cache.inspect("users")).toMatchObject({ type: "object" });
  });

  it.each(["gzip", "brotli"] as const)(
    "%s is unpacked as far as it is shown",
    { timeout: 60_000 },
    async (algorithm) => {
      const { cache, call } = opened(
        { ...settings(), compression: { algorithm, thresholdBytes: 1_000 } },
        { values: true },
      );
      await cache.set("flat", "y".repeat(LARGE));
      let seed = 1;
      const noise = Array.from({ length: 300_000 }, () => (seed = (seed * 48_271) % 2_147_483_647));
      await cache.set("noise", noise);
      for (const key of ["flat", "noise"]) {
        const { result, sent, grown } = await costOf(() => call<Shown>("entry", { key }));
        expect([key, sent < LITTLE]).toEqual([key, true]);
        expect([key, grown < LITTLE_MEMORY || grown]).toEqual([key, true]);
        expect(result.value).toMatchObject({ type: key === "flat" ? "string" : "array", cut: true });
      }
      expect((await call<Shown>("entry", { key: "noise" })).value?.text).toContain("48271,");
      expect(await listed(cache)).toEqual(
        expect.arrayContaining([
          expect.objectContaining({ key: "flat", type: "string" }),
          expect.objectContaining({ key: "noise", type: "array" }),
        ]),
      );
    },
  );

  it("an encrypted value that is too large to be read is not shown, and says why", {
    timeout: 60_000,
  }, async () => {
    const { cache, call } = opened(
      { ...settings(), encryption: { keys: { a: "0123456789 a secret" } } },
      { values: true },
    );
    await cache.set("big", "y".repeat(5 * MB), { tags: ["t"] });
    await cache.set("small", { name: "Ada" });
    const { result, sent } = await costOf(() => call<Shown>("entry", { key: "big" }));
    expect(sent).toBeLessThan(LITTLE);
    expect(result).toMatchObject({ tags: ["t"], state: "fresh" });
    expect(result.value).toMatchObject({ text: "", hidden: expect.stringMatching(/encrypted/) });
    expect((await call<Shown>("entry", { key: "small" })).value?.text).toContain("Ada");
    expect(await cache.inspect("small")).toMatchObject({ type: "object" });
    const info = await cache.inspect("big");
    expect(info).toMatchObject({ tags: ["t"] });
    expect(info).not.toHaveProperty("type");
    expect(await cache.exists("big")).toBe(true);
  });
});

describe.each(["redis", "disk", "encrypted"])("removed, on %s", (store) => {
  const settings = (): CacheConfig =>
    store === "encrypted"
      ? { ...STORES.redis?.(), encryption: { keys: { a: "0123456789 a secret" } } }
      : (STORES[store] as () => CacheConfig)();

  it("a large value is deleted from the dashboard, the command line and by a pattern without being read", {
    timeout: 60_000,
  }, async () => {
    const { cache, call } = opened(settings(), { writes: true });
    const inside = insideOf(cache) as CacheInside;
    const value = "y".repeat(5 * MB);
    for (const [what, work] of Object.entries({
      dashboard: () => call<{ deleted: number }>("delete", { key: "big" }).then(({ deleted }) => deleted),
      "command line": () => inside.deleteUnread(["big", "small", "missing"]),
      pattern: () => cache.invalidatePattern("*"),
    })) {
      await cache.set("big", value, { tags: ["t"] });
      if (what !== "dashboard") await cache.set("small", 1);
      const { result, sent } = await costOf<number>(work);
      expect([what, result, sent < LITTLE || sent]).toEqual([what, what === "dashboard" ? 1 : 2, true]);
      expect(await cache.exists("big")).toBe(false);
    }
    // An entry whose tag was invalidated is removed, and was not live.
    await cache.set("big", value, { tags: ["t"] });
    await cache.invalidateTags("t");
    expect(await inside.deleteUnread(["big"])).toBe(0);
  });
});

it("a value of a format that this version does not know is listed, and its look-up says so", async () => {
  const { cache, call } = opened({ kvUrl: redis.url }, { values: true });
  await cache.set("odd", "y".repeat(100_000));
  await cache.set("small", "y");
  for (const key of ["odd", "small"]) {
    const changed = await redis.cli("EVAL", FOREIGN_FORMAT, "0", `l${prefixes}*:${key}`);
    expect(changed).toBe("1");
    const lines = await call<readonly { exact?: object; entries?: readonly { key: string }[] }[]>("keys");
    expect(lines.flatMap(({ entries = [] }) => entries).some((entry) => entry.key === key)).toBe(true);
    const { value } = await call<Shown>("entry", { key });
    expect(value).toMatchObject({ text: "", hidden: expect.stringMatching(/format .* unknown/) });
    expect(await cache.inspect(key)).not.toHaveProperty("type");
  }
});

/** Another version may store values in another format: the byte before the check byte, which follows from those before it. */
const FOREIGN_FORMAT = `
  local key = redis.call('KEYS', ARGV[1])[1]
  redis.call('SETRANGE', key, 31, '\\14')
  local check = 90
  for at = 1, 32 do check = (check * 31 + string.byte(redis.call('GETRANGE', key, at - 1, at - 1))) % 256 end
  redis.call('SETRANGE', key, 32, string.char(check))
  return 1`;

it("keys of 64 KiB and values with invalid text are shown", async () => {
  const { cache, call } = opened({ kvUrl: redis.url }, { values: true });
  const key = "k".repeat(60_000);
  const { result, sent } = await costOf(async () => {
    await cache.set(key, `\ud800${"z".repeat(300_000)}`);
    return call<Shown>("entry", { key });
  });
  expect(sent).toBeLessThan(LITTLE + 300_000);
  expect(result.value?.text).toMatch(/^\ud800z+$/);
  expect(result.value).toMatchObject({ type: "string", cut: true });
  expect(await listed(cache)).toMatchObject([{ key, type: "string" }]);
});
