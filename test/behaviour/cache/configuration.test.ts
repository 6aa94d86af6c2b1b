import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "node:util";
import { afterAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { MemoryBackend } from "../../../src/backends/memory/backend.ts";
import type { CacheConfig } from "../../../src/config/types.ts";
import { ConfigError, type XCacheError } from "../../../src/core/errors.ts";
import { cacheWithClock, ManualClock } from "../../../src/testing/index.ts";
import { XCache } from "../../../src/xcache.ts";

const folder = mkdtempSync(join(tmpdir(), "xcache-configuration-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function yamlFile(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

/** Closed when the test ends. */
function opened(cache: XCache): XCache {
  onTestFinished(() => cache.disconnect());
  return cache;
}

/** The lifetime that the cache gives to an entry, in seconds. */
async function lifetime(cache: XCache): Promise<number> {
  await cache.set("k", 1);
  return Math.ceil((await cache.ttl("k")) as number);
}

/** Everything that a log, a console or a reply to a client could show of an error, including causes and hidden fields. */
function everythingIn(error: unknown): string {
  const { message, stack, cause, hint } = error as XCacheError;
  const shown = inspect(error, { depth: Number.POSITIVE_INFINITY, showHidden: true, getters: true });
  const causes = cause === undefined ? "" : everythingIn(cause);
  return [String(error), message, stack, hint, shown, JSON.stringify(error), causes].join("\n");
}

function thrownBy(run: () => unknown): unknown {
  try {
    run();
  } catch (error) {
    return error;
  }
  throw new Error("nothing was thrown");
}

describe("the source of a configuration", () => {
  it("can be an object, bare or under `config`", async () => {
    const config: CacheConfig = { kvUrl: "memory://", defaultTtl: 20 };
    expect(await lifetime(opened(new XCache(config)))).toBe(20);
    expect(await lifetime(opened(new XCache({ config })))).toBe(20);
    expect(await lifetime(opened(new XCache(Object.freeze({ config: Object.freeze(config) }))))).toBe(20);
  });

  it("can be the given environment, or that of the process", async () => {
    const env = { XCACHE_KV_URL: "memory://", XCACHE_DEFAULT_TTL: "30", PATH: "ignored" };
    expect(await lifetime(opened(XCache.fromEnv(env)))).toBe(30);
    for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
    onTestFinished(() => void vi.unstubAllEnvs());
    expect(await lifetime(opened(XCache.fromEnv()))).toBe(30);
  });

  it("can be a YAML file, read synchronously", async () => {
    const path = yamlFile("good.yaml", "kv_url: memory://\ndefault_ttl: 40\nenable_fuzzy: true\n");
    const cache = opened(XCache.fromYaml(path));
    rmSync(path);
    expect(await lifetime(cache)).toBe(40);
    expect(await cache.fuzzySearch("k")).toHaveLength(1);
  });

  it("can be changed afterwards without effect", async () => {
    const config = { kvUrl: "memory://", defaultTtl: 20 };
    const cache = opened(new XCache(config));
    config.defaultTtl = 99;
    expect(await lifetime(cache)).toBe(20);
  });
});

describe("the effect of a configuration", () => {
  it("memory:// creates a separate store for every cache, a backend object is shared", async () => {
    const [one, other] = [
      opened(new XCache({ kvUrl: "memory://" })),
      opened(new XCache({ kvUrl: "memory://" })),
    ];
    await one.set("k", 1);
    expect(await other.get("k")).toBeUndefined();
    const backend = new MemoryBackend();
    const [a, b] = [opened(new XCache({ backend })), opened(new XCache({ backend }))];
    await a.set("k", 1);
    expect(await b.get("k")).toBe(1);
  });

  it("options of the store are part of the address", async () => {
    const cache = opened(new XCache({ kvUrl: "memory://?max_entries=2&values=shared" }));
    const value = { n: 1 };
    await cache.setMany({ a: value, b: value, c: value });
    expect((await cache.getStats({ exact: true })).totalKeys).toBe(2);
    expect(await cache.get("c")).toBe(value);
  });

  it("staleIfError and staleWhileRevalidate are the defaults of getOrSet", async () => {
    const clock = new ManualClock();
    const cache = opened(cacheWithClock({ kvUrl: "memory://", defaultTtl: 0.001, staleIfError: 60 }, clock));
    await cache.getOrSet("k", () => "old");
    await clock.advance(1);
    expect(await cache.exists("k")).toBe(false);
    expect(await cache.getOrSet("k", () => Promise.reject(new Error("down")))).toBe("old");
    await expect(
      cache.getOrSet("k", () => Promise.reject(new Error("down")), { staleIfError: 0 }),
    ).rejects.toThrow("down");
  });
});

describe("errors are raised immediately and name the field", () => {
  const wrong: [name: string, config: unknown, code: string, words: RegExp][] = [
    ["null", null, "CONFIG_INVALID", /must be an object, got null/],
    ["a string", "memory://", "CONFIG_INVALID", /must be an object, got "memory:\/\/"/],
    ["a list", [], "CONFIG_INVALID", /must be an object, got an array of 0/],
    ["config: null", { config: null }, "CONFIG_INVALID", /must be an object, got null/],
    ["config next to a field", { config: {}, keyPrefix: "a" }, "CONFIG_UNKNOWN_FIELD", /"config"/],
    ["an unknown field", { defaultTTL: 5 }, "CONFIG_UNKNOWN_FIELD", /"defaultTTL".*defaultTtl/],
    ["the wire's spelling", { default_ttl: 5 }, "CONFIG_UNKNOWN_FIELD", /"default_ttl".*defaultTtl/],
    ["a ttl of 0", { defaultTtl: 0 }, "CONFIG_INVALID", /defaultTtl must be .* at least 0.001.*got 0/],
    ["a text for a number", { defaultTtl: "5" }, "CONFIG_INVALID", /defaultTtl must be .*got "5"/],
    [
      "jitter of 1",
      { ttlJitter: 1 },
      "CONFIG_INVALID",
      /ttlJitter must be a number from 0 to less than 1, got 1/,
    ],
    ["an empty prefix", { keyPrefix: "" }, "CONFIG_INVALID", /keyPrefix must be a non-empty string/],
    ["half a backend", { backend: { name: "x" } }, "CONFIG_INVALID", /backend must be a Backend object/],
    ["an unknown scheme", { kvUrl: "mysql://h" }, "CONFIG_INVALID", /kvUrl/],
  ];

  it.each(wrong)("%s", (_name, config, code, words) => {
    const error = thrownBy(() => new XCache(config as CacheConfig));
    expect(error).toBeInstanceOf(ConfigError);
    expect(error).toMatchObject({ code, message: expect.stringMatching(words) });
  });

  it("an environment variable that does not parse is named", () => {
    const error = thrownBy(() => XCache.fromEnv({ XCACHE_KV_URL: "memory://", XCACHE_DEFAULT_TTL: "soon" }));
    expect(error).toMatchObject({
      code: "CONFIG_INVALID",
      message: expect.stringMatching(/XCACHE_DEFAULT_TTL.*"soon"/),
    });
  });

  it("a YAML key is named with its line, an unreadable file with its path", () => {
    const path = yamlFile("bad.yaml", "kv_url: memory://\ndefault_tll: 5\n");
    expect(thrownBy(() => XCache.fromYaml(path))).toMatchObject({
      code: "CONFIG_UNKNOWN_FIELD",
      message: expect.stringMatching(/bad\.yaml:2:1.*default_tll.*default_ttl/),
    });
    expect(thrownBy(() => XCache.fromYaml(join(folder, "absent.yaml")))).toMatchObject({
      code: "CONFIG_UNREADABLE",
      message: expect.stringContaining("absent.yaml"),
    });
    expect(thrownBy(() => XCache.fromYaml(undefined as never))).toMatchObject({ code: "ARGUMENT_INVALID" });
  });

  describe.each<[name: string, open: (kvUrl: string) => XCache]>([
    ["an object", (kvUrl) => new XCache({ kvUrl })],
    ["the environment", (kvUrl) => XCache.fromEnv({ XCACHE_KV_URL: kvUrl })],
    [
      "a YAML file",
      (kvUrl) => XCache.fromYaml(yamlFile("address.yaml", `kv_url: ${JSON.stringify(kvUrl)}\n`)),
    ],
  ])("an unusable address in %s", (_name, open) => {
    it.each([
      ["of an unknown scheme", "mysql://hush-user:hush-word@host:1/0", ConfigError],
      ["of a misspelt scheme", "redi://hush-user:hush-word@host:1/0", ConfigError],
      ["without a scheme", "hush-user:hush-word@host:1/0", ConfigError],
      ["of a store without logins", "memcached://hush-user:hush-word@host:1", ConfigError],
      ["with a wrong port", "redis://hush-user:hush-word@host:none/0", ConfigError],
      ["with a wrong database", "redis://:hush-word@host:1/none", ConfigError],
      ["with a raw @ and / in the password", "redis://hush-user:hush-1@hush-2/hush-3@host:none", ConfigError],
      ["with a password that cannot be decoded", "redis://hush-user:hush-word%zz@host:1/0", ConfigError],
      ["with a password among the options", "redis://host:1/0?password=hush-word", ConfigError],
      [
        "with a sentinel's password and a wrong name",
        "redis+sentinel://h/a/b?sentinel_password=hush-word",
        ConfigError,
      ],
    ])("no part of an error shows the credentials: one %s", (_which, kvUrl, kind) => {
      const error = thrownBy(() => open(kvUrl));
      expect(error).toBeInstanceOf(kind);
      expect(everythingIn(error)).not.toMatch(/hush/i);
    });
  });

  it("a wrong option of MemoryBackend is named", () => {
    expect(thrownBy(() => new MemoryBackend({ maxEntrys: 5 } as never))).toMatchObject({
      code: "CONFIG_UNKNOWN_FIELD",
      message: expect.stringMatching(/"maxEntrys".*maxEntries/),
    });
    for (const options of [
      { maxEntries: 0 },
      { maxEntries: 1.5 },
      { maxBytes: -1 },
      { values: "mine" },
      null,
    ]) {
      expect(thrownBy(() => new MemoryBackend(options as never))).toMatchObject({ code: "CONFIG_INVALID" });
    }
  });
});

describe("subclasses", () => {
  it("inherit everything; their namespaces are plain caches", async () => {
    class Sessions extends XCache {
      constructor() {
        super({ kvUrl: "memory://", defaultTtl: 15 });
      }
      start(id: string): Promise<void> {
        return this.set(`session:${id}`, { id });
      }
    }
    const sessions = new Sessions();
    opened(sessions);
    await sessions.start("a");
    expect(await sessions.get("session:a")).toEqual({ id: "a" });
    const child = sessions.namespace("child");
    expect(child).toBeInstanceOf(XCache);
    expect(child).not.toBeInstanceOf(Sessions);
  });
});
