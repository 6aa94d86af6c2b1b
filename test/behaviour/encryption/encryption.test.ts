// Encrypted entries cannot be read, moved, altered or forged without a key; key rotation; secrets are never shown.
import { inspect } from "node:util";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { DiskBackend } from "../../../src/backends/disk/backend.ts";
import type { CacheConfig } from "../../../src/config/types.ts";
import { ConfigError } from "../../../src/core/errors.ts";
import { XCache } from "../../../src/xcache.ts";
import { freshFolders } from "../../support/disk/folder.ts";
import { type MemcachedServer, startMemcached } from "../../support/memcached.ts";
import { type RedisServer, startRedis } from "../../support/redis.ts";
import { until } from "../../support/until.ts";

const SECRET = "0123456789 very secret 0123456789";
const OTHER = "another secret 0123456789";

let redis: RedisServer;
let memcached: MemcachedServer;
beforeAll(async () => {
  [redis, memcached] = await Promise.all([startRedis(), startMemcached()]);
});
afterAll(() => Promise.all([redis?.stop(), memcached?.stop()]));
const folder = freshFolders();

let opened: XCache[] = [];
let unreadable: string[] = [];
let run = 0;
beforeEach(async () => {
  await Promise.all(opened.map((cache) => cache.disconnect()));
  opened = [];
  unreadable = [];
  run++;
});
afterAll(() => Promise.all(opened.map((cache) => cache.disconnect())));

function open(encryption: CacheConfig["encryption"], config: CacheConfig = {}): XCache {
  const cache = new XCache({
    kvUrl: redis.url,
    keyPrefix: `run${run}`,
    operationTimeout: 10,
    ...config,
    ...(encryption && { encryption }),
  });
  cache.on("error", ({ error }) => {
    const { code, message } = error as Error & { code?: string };
    if (code === "ENTRY_UNREADABLE") unreadable.push(message);
  });
  opened.push(cache);
  return cache;
}

const one = { keys: { a: SECRET }, use: "a" };
const raw = async (key: string): Promise<Buffer> => {
  const text = await redis.cli("--no-raw", "DUMP", key);
  return Buffer.from(text);
};

describe("what the store holds", () => {
  test("does not contain the value", async () => {
    const cache = open(one);
    await cache.set("k", { card: "4111 1111 1111 1111" }, { tags: ["t"] });
    expect(await cache.get("k")).toEqual({ card: "4111 1111 1111 1111" });
    expect((await raw(`run${run}:k`)).includes("4111")).toBe(false);
    const plain = open(false);
    await plain.set("plain", { card: "4111 1111 1111 1111" });
    expect((await raw(`run${run}:plain`)).includes("4111")).toBe(true);
  });

  test("differs for equal values", async () => {
    const cache = open(one);
    await cache.set("k", "equal");
    const first = await raw(`run${run}:k`);
    await cache.set("k", "equal");
    expect((await raw(`run${run}:k`)).equals(first)).toBe(false);
  });
});

test("an entry that outlives the latest time of a frame can be opened, with a stale window after it", async () => {
  const cache = open(one);
  const options = { ttl: Number.MAX_SAFE_INTEGER, staleIfError: 60 };
  await cache.getOrSet("k", () => "first", options);
  expect(await cache.getOrSet("k", () => "again", options)).toBe("first");
  expect(unreadable).toEqual([]);
});

describe("an entry is absent, and that is reported,", () => {
  const copied = async (from: string, to: string): Promise<void> => {
    await redis.cli("COPY", `run${run}:${from}`, `run${run}:${to}`, "REPLACE");
  };
  const altered = (key: string, at: number): Promise<string> =>
    redis.cli(
      "EVAL",
      `local v = redis.call('GET', KEYS[1]); local at = tonumber(ARGV[1]) + 1
       local b = string.char(bit.bxor(string.byte(v, at), 1))
       redis.call('SET', KEYS[1], string.sub(v, 1, at - 1) .. b .. string.sub(v, at + 1), 'KEEPTTL') return #v`,
      "1",
      `run${run}:${key}`,
      String(at),
    );

  test("when it was moved to another key", async () => {
    const cache = open(one);
    await cache.set("mine", "money of mine");
    await cache.set("yours", "money of yours");
    await copied("mine", "yours");
    expect(await cache.get("yours")).toBeUndefined();
    expect(unreadable).toHaveLength(1);
    expect(await cache.getOrSet("yours", () => "loaded")).toBe("loaded");
    expect(await cache.get("yours")).toBe("loaded");
    expect(await cache.get("mine")).toBe("money of mine");
  });

  test("when any of its bytes was changed", async () => {
    const cache = open(one);
    await cache.set("k", "value", { tags: ["t"], ttl: 100 });
    const length = Number(await redis.cli("STRLEN", `run${run}:k`));
    for (let at = 0; at < length; at++) {
      await cache.set("k", "value", { tags: ["t"], ttl: 100 });
      await altered("k", at);
      // The header has a check of its own, which finds a change before the decryption does.
      const found = await cache.get("k").catch(() => undefined);
      expect(found, `byte ${at} of ${length}`).toBeUndefined();
    }
    expect(unreadable.length).toBeGreaterThan(20);
  });

  test("when it is not encrypted, so that none can be added without a key", async () => {
    await open(false).set("k", "forged");
    const cache = open(one);
    expect(await cache.get("k")).toBeUndefined();
    expect([...(await cache.getMany(["k", "other"])).keys()]).toEqual([]);
    expect(await cache.getOrSet("k", () => "true")).toBe("true");
    expect(await cache.get("k")).toBe("true");
    expect(unreadable[0]).toContain("not encrypted");
  });

  test("when its key is wrong or unknown, on every store, and the load replaces it", async () => {
    const stores = [{ kvUrl: redis.url }, { kvUrl: memcached.url }, { kvUrl: `file://${folder()}` }];
    for (const config of [...stores, { kvUrl: redis.url, nearCache: true, keyPrefix: `near${run}` }]) {
      unreadable = [];
      await open(one, config).set("k", "old");
      const wrong = open({ keys: { a: OTHER }, use: "a" }, config);
      expect(await wrong.get("k")).toBeUndefined();
      const unknown = open({ keys: { b: OTHER }, use: "b" }, config);
      expect(await unknown.get("k")).toBeUndefined();
      expect(unreadable.length).toBeGreaterThanOrEqual(2);
      expect(await unknown.getOrSet("k", ({ stale }) => ["loaded", stale])).toEqual(["loaded", undefined]);
      expect(await unknown.get("k")).toEqual(["loaded", undefined]);
      expect(await unknown.delete("k")).toBe(1);
    }
  });
});

describe("keys are rotated", () => {
  test("old ids decrypt, the new one encrypts", async () => {
    const before = open(one);
    await before.set("k", 1);
    const after = open({ keys: { a: SECRET, b: OTHER }, use: "b" });
    expect(await after.get("k")).toBe(1);
    await after.set("k", 2);
    expect(await before.get("k")).toBeUndefined();
    expect(await open({ keys: { b: OTHER } }).get("k")).toBe(2);
  });

  test("by a function, sync or async, that is called again for an unknown id", async () => {
    let handedOut: Record<string, string> = { a: SECRET };
    let use = "a";
    const late = open({ keys: async () => ({ keys: handedOut, use }) });
    const early = open({ keys: () => handedOut, use: "a" });
    await late.set("k", 1);
    expect(await early.get("k")).toBe(1);
    await open({ keys: { a: SECRET, b: OTHER }, use: "b" }).set("new", 2);
    expect(await late.get("new")).toBeUndefined();
    [handedOut, use] = [{ a: SECRET, b: OTHER }, "b"];
    await until(async () => (await late.get("new")) === 2, { what: "the new key was asked for" });
    await until(async () => (await early.get("new")) === 2, { what: "the new key was asked for" });
    await late.set("newer", 3);
    expect(await open({ keys: { b: OTHER } }).get("newer")).toBe(3);
  });

  test("a failing function makes the store unusable, with an error that does not reveal the secret", async () => {
    let isBroken = true;
    const cache = open({
      keys: () => {
        if (isBroken) throw new Error("the secrets manager is away");
        return { a: SECRET };
      },
    });
    await expect(cache.set("k", 1)).rejects.toThrow("the secrets manager is away");
    expect(await cache.getOrSet("k", () => "loaded")).toBe("loaded");
    isBroken = false;
    await until(() => cache.set("k", 2).then(() => true), { what: "the keys were asked for again" });
    expect(await cache.get("k")).toBe(2);
  });
});

const listed = async (cache: XCache): Promise<string[]> => {
  const keys: string[] = [];
  for await (const key of cache.keys()) keys.push(key);
  return keys;
};

describe("hidden keys", () => {
  const hidden = { keys: { a: SECRET }, hideKeys: true };

  test("neither keys nor tags are visible in the store, and everything works with the secret", async () => {
    const [cache, other] = [open(hidden, { nearCache: true }), open(hidden)];
    await cache.set("alice@example.org", 1, { tags: ["patients"] });
    await cache.set("bob@example.org", 2, { tags: ["patients"] });
    await other.namespace("inner").set("carol@example.org", 3);
    const keys = await redis.cli("KEYS", `run${run}*`);
    expect(keys).not.toMatch(/alice|bob|carol|patients/);
    for (const key of keys.split("\n")) expect((await raw(key)).toString()).not.toMatch(/alice|patients/);
    expect(await other.get("alice@example.org")).toBe(1);
    expect(await other.tags("alice@example.org")).toEqual(["patients"]);
    expect((await listed(other)).sort()).toEqual(["alice@example.org", "bob@example.org"]);
    expect(await other.invalidatePattern("alice*")).toBe(1);
    await until(async () => (await cache.get("alice@example.org")) === undefined, { what: "it is pushed" });
    await other.invalidateTags("patients");
    await until(async () => (await cache.get("bob@example.org")) === undefined, { what: "it is pushed" });
    expect(unreadable).toEqual([]);
  });

  test("keys of any characters", async () => {
    const cache = open(hidden);
    for (const key of ["\ud800", "ü:!/%{}", "x".repeat(60_000), "\0", "🙂"]) {
      await cache.set(key, key);
      expect(await cache.get(key)).toBe(key);
    }
    expect((await listed(cache)).length).toBe(5);
  });
});

describe("bad input", () => {
  test.each<[CacheConfig["encryption"], string]>([
    [
      { keys: { a: "short" } },
      'the secret of "a" must be a string or Uint8Array of at least 16 bytes, got 5 bytes',
    ],
    [{ keys: { a: 12 as never } }, "got a value of type number"],
    [{ keys: {} }, "encryption.use must be the id of one of the keys (none)"],
    [{ keys: { a: SECRET, b: OTHER } }, 'encryption.use must be the id of one of the keys ("a", "b")'],
    [{ keys: { a: SECRET }, use: "c" }, 'encryption.use must be the id of one of the keys ("a")'],
    [{ keys: { a: SECRET }, hideKeys: "c" }, "encryption.hide_keys must be true, false or the id of one"],
    [{ keys: { a: SECRET }, pasword: 1 } as never, "pasword"],
  ])("%#: says what was expected, and shows no secret", (encryption, message) => {
    let thrown: unknown;
    try {
      open(encryption);
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toBeInstanceOf(ConfigError);
    expect((thrown as Error).message).toContain(message);
    expect(inspect(thrown)).not.toMatch(/0123456789|short/);
  });

  test("caches on one backend object must agree", () => {
    const backend = new DiskBackend({ directory: folder() });
    open(one, { backend });
    open({ ...one }, { backend });
    expect(() => open({ keys: { a: OTHER } }, { backend })).toThrow(
      "encryption must be as in the first cache",
    );
    expect(() => open(false, { backend })).toThrow("encryption must be as in the first cache");
  });

  test("a cache without keys says that an entry is encrypted", async () => {
    await open(one).set("k", 1);
    await expect(open(false).get("k")).rejects.toMatchObject({ code: "ENTRY_UNREADABLE" });
  });

  test("an inspected cache shows no secret", () => {
    const cache = open(one);
    expect(inspect(cache, { depth: 10, showHidden: true })).not.toContain("very secret");
    expect(JSON.stringify(cache) ?? "").not.toContain("very secret");
  });
});
