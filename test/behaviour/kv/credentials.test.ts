// Credentials that change: password functions, logins that expire, TLS files that are renewed. On real servers with ACL users.
import "../../../src/backends/kv/client.ts";
import { copyFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { inspect } from "node:util";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { KvBackend } from "../../../src/backends/kv/backend.ts";
import type { CacheConfig } from "../../../src/config/types.ts";
import type { PasswordFunction } from "../../../src/core/address/address.ts";
import { ConfigError, ConnectionError, OperationTimeoutError } from "../../../src/core/errors.ts";
import { XCache } from "../../../src/xcache.ts";
import { makeCertificates } from "../../support/certificate.ts";
import { FakeServer, sentinelFor } from "../../support/kv/fake-server.ts";
import { failure } from "../../support/opened.ts";
import { soon } from "../../support/pace.ts";
import { type RedisServer, startRedis } from "../../support/redis.ts";
import { startCluster } from "../../support/redis-cluster.ts";
import { until } from "../../support/until.ts";

const SECRET = "hunter2-first";
const RULES = ["~*", "&*", "+@all"];

let server: RedisServer;
const caches: XCache[] = [];

beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.stop());
afterEach(async () => {
  for (const cache of caches.splice(0)) await cache.disconnect();
});

function open(config: CacheConfig): { cache: XCache; errors: Error[] } {
  const cache = new XCache({
    keyPrefix: "credentials",
    operationTimeout: 1,
    connectTimeout: 1,
    enableMetrics: false,
    ...config,
  });
  const errors: Error[] = [];
  cache.on("error", ({ error }) => errors.push(error));
  caches.push(cache);
  return { cache, errors };
}

const plainUrl = ({ port }: RedisServer, login = ""): string => `redis://${login}127.0.0.1:${port}`;

/** Gives the user this password and no other. */
async function setUser(name: string, password: string, on = server): Promise<void> {
  await on.cli("ACL", "SETUSER", name, "reset", "on", `>${password}`, ...RULES);
}

interface Client {
  readonly id: string;
  readonly user: string;
}

/** The connections of this library, as listed by the server. */
async function clientsOf(on = server): Promise<readonly Client[]> {
  const lines = (await on.cli("CLIENT", "LIST")).split("\n").filter((line) => line.includes(" name=xcache "));
  return lines.map((line) => ({
    id: / ?id=(\d+)/.exec(line)?.[1] ?? "",
    user: / user=(\S+)/.exec(line)?.[1] ?? "",
  }));
}

async function isUsable(cache: XCache): Promise<void> {
  await cache.set("k", "v");
  expect(await cache.get("k")).toBe("v");
}

/** Every text form that might be printed. */
const printed = (...things: unknown[]): string =>
  things.map((thing) => `${String(thing)}\n${inspect(thing, { depth: 20, showHidden: true })}`).join("\n");

describe("username and password as fields", () => {
  it("log in, of the cache and of KvBackend alike, and replace those of the address", async () => {
    await setUser("app", SECRET);
    const logins: CacheConfig[] = [
      { kvUrl: plainUrl(server), username: "app", password: SECRET },
      { kvUrl: plainUrl(server, "app@"), password: SECRET },
      { kvUrl: plainUrl(server, "somebody:else@"), username: "app", password: SECRET },
      { backend: new KvBackend({ kvUrl: plainUrl(server, "app@"), password: () => SECRET }) },
    ];
    for (const login of logins) {
      const { cache } = open(login);
      await isUsable(cache);
      expect(await clientsOf()).toEqual([expect.objectContaining({ user: "app" })]);
      await cache.disconnect();
      await until(async () => (await clientsOf()).length === 0, { what: "it has left" });
    }
  });

  it.each([
    ["a user without a password", { kvUrl: "redis://app@localhost" }, /a user name needs a password/],
    ["a memory store", { kvUrl: "memory://", password: SECRET }, /for Redis and Valkey/],
    ["memcached", { kvUrl: "memcached://localhost", username: "app" }, /for Redis and Valkey/],
    [
      "a backend object",
      { backend: new KvBackend({ kvUrl: "redis://localhost" }), password: SECRET },
      /of its own/,
    ],
    ["a misspelling", { pasword: SECRET } as CacheConfig, /did you mean "password"\?/],
  ])("are refused for %s", (_, config: CacheConfig, words) => {
    const error = (() => {
      try {
        return open(config);
      } catch (thrown) {
        return thrown;
      }
    })();
    expect(error).toBeInstanceOf(ConfigError);
    expect((error as Error).message).toMatch(words);
    expect(printed(error)).not.toContain(SECRET);
  });

  it("are checked by KvBackend, whose error names only the type of the value", () => {
    for (const password of [42_424_242, "", null, { secret: SECRET }]) {
      const make = () => new KvBackend({ kvUrl: "redis://localhost", password: password as never });
      expect(make).toThrow(ConfigError);
      expect(make).not.toThrow(/42424242|hunter2/);
    }
  });
});

describe("a password function", () => {
  it("is called for every connection, so a rotated password requires no restart", async () => {
    await setUser("rotating", SECRET);
    let password = SECRET;
    let calls = 0;
    const source: PasswordFunction = async () => {
      calls++;
      return password;
    };
    const { cache, errors } = open({
      kvUrl: plainUrl(server, "rotating@"),
      password: source,
      poolSize: 2,
      nearCache: true,
    });
    await cache.connect();
    await isUsable(cache);
    expect(calls).toBe(2);
    for (const next of ["hunter2-second", "hunter2-third"]) {
      password = next;
      await setUser("rotating", next);
      await server.cli("CLIENT", "KILL", "USER", "rotating");
      await until(() => isUsable(cache).then(() => true), { what: "it is connected again" });
    }
    expect(calls).toBeGreaterThanOrEqual(6);
    expect(printed(...errors)).not.toContain("hunter2");
  });

  it("may return the user too", async () => {
    await setUser("named", SECRET);
    const { cache } = open({
      kvUrl: plainUrl(server),
      username: "nobody",
      password: () => ({ username: "named", password: SECRET }),
    });
    await isUsable(cache);
    expect((await clientsOf()).map(({ user }) => user)).toEqual(["named"]);
  });

  it("that throws fails the connection, and is called again for the next one", async () => {
    await setUser("late", SECRET);
    let isBroken = true;
    const { cache } = open({
      kvUrl: plainUrl(server, "late@"),
      password: () => {
        if (isBroken) throw new Error("no token from redis://x:hunter2@vault");
        return SECRET;
      },
    });
    const error = await failure(cache.connect());
    expect(error).toBeInstanceOf(ConnectionError);
    expect(error.message).toContain("the password function failed: no token");
    expect(printed(error)).not.toContain("hunter2");
    isBroken = false;
    await until(() => isUsable(cache).then(() => true), { what: "it is connected" });
  });

  it("that hangs fails within connect_timeout, and disconnect does not wait for it", async () => {
    const { cache } = open({
      kvUrl: plainUrl(server, "app@"),
      password: () => new Promise(() => {}),
      connectTimeout: 0.2,
    });
    const began = performance.now();
    const error = await failure(cache.connect());
    expect(error).toBeInstanceOf(OperationTimeoutError);
    expect(error.message).toContain("connect_timeout (0.2 s)");
    expect(performance.now() - began).toBeLessThan(soon(700));
    await cache.disconnect();
    expect(performance.now() - began).toBeLessThan(soon(1_400));
  });

  it.each([
    ["nothing", undefined],
    ["an empty text", ""],
    ["a number", 42_424_242],
    ["an object without a password", { token: SECRET }],
    ["an invalid expiry", { password: SECRET, expiresAt: "tomorrow" }],
  ])("that returns %s fails the connection, with an error that does not show the value", async (_, given) => {
    const { cache } = open({ kvUrl: plainUrl(server), password: (() => given) as PasswordFunction });
    const error = await failure(cache.connect());
    expect(error).toBeInstanceOf(ConnectionError);
    expect(error.message).toContain("the password function must return");
    expect(printed(error)).not.toMatch(/hunter2|42424242/);
  });

  it("whose password the server refuses does not leak it into any message", async () => {
    const { cache, errors } = open({ kvUrl: plainUrl(server, "app@"), password: () => "hunter2-wrong" });
    const error = await failure(cache.connect());
    expect(error).toBeInstanceOf(ConnectionError);
    expect(error.message).toContain("WRONGPASS");
    expect(printed(error, cache, await cache.detailedHealthCheck(), ...errors)).not.toContain("hunter2");
  });
});

describe("a login that expires", () => {
  /** Each call returns another user, so that the server's client list shows which login is in use. */
  function expiring(lifetimeMs: number): { source: PasswordFunction; calls: () => number } {
    let calls = 0;
    const source: PasswordFunction = async () => {
      calls++;
      return {
        username: calls <= 2 ? "token1" : "token2",
        password: SECRET,
        expiresAt: Date.now() + lifetimeMs,
      };
    };
    return { source, calls: () => calls };
  }

  it("is renewed by AUTH on every living connection before it expires", async () => {
    await Promise.all([setUser("token1", SECRET), setUser("token2", SECRET)]);
    const { source, calls } = expiring(900);
    const { cache, errors } = open({
      kvUrl: plainUrl(server),
      password: source,
      poolSize: 2,
      nearCache: true,
    });
    await cache.connect();
    const before = await clientsOf();
    expect(before.map(({ user }) => user)).toEqual(["token1", "token1"]);
    await until(async () => (await clientsOf()).every(({ user }) => user === "token2"), {
      what: "both are renewed",
    });
    expect((await clientsOf()).map(({ id }) => id)).toEqual(before.map(({ id }) => id));
    await isUsable(cache);
    // And repeatedly.
    const renewed = calls();
    await until(() => calls() > renewed, { what: "it is renewed once more" });
    expect(errors).toEqual([]);
  });

  it("that cannot be renewed is reported once, without the password; the connection stays and the renewal is retried", async () => {
    await Promise.all([setUser("token1", SECRET), setUser("token2", SECRET)]);
    let calls = 0;
    const { cache, errors } = open({
      kvUrl: plainUrl(server),
      password: () => {
        calls++;
        const password = calls === 2 || calls === 3 ? "hunter2-wrong" : SECRET;
        return {
          username: calls === 1 ? "token1" : "token2",
          password,
          expiresAt: new Date(Date.now() + 600),
        };
      },
    });
    await cache.connect();
    const [before] = await clientsOf();
    await until(() => errors.length > 0, { what: "it is reported" });
    expect(errors[0]).toBeInstanceOf(ConnectionError);
    await isUsable(cache);
    await until(async () => (await clientsOf())[0]?.user === "token2", { what: "it is renewed" });
    expect((await clientsOf())[0]?.id).toBe(before?.id);
    expect(errors).toHaveLength(1);
    expect(printed(...errors)).not.toContain("hunter2");
  });

  it("is renewed on the servers of a cluster", async () => {
    await using cluster = await startCluster({ replicas: 0 });
    for (const node of cluster.nodes)
      for (const user of ["token1", "token2"]) await setUser(user, SECRET, node);
    const began = Date.now();
    const source: PasswordFunction = () => ({
      username: Date.now() - began < 400 ? "token1" : "token2",
      password: SECRET,
      expiresAt: Date.now() + 900,
    });
    const { cache } = open({ kvUrl: cluster.url, password: source });
    await cache.connect();
    await until(
      async () => {
        const clients = await Promise.all(cluster.nodes.map((node) => clientsOf(node)));
        return clients.every((each) => each.length > 0 && each.every(({ user }) => user === "token2"));
      },
      { what: "every master has seen the renewal" },
    );
    await isUsable(cache);
  });

  it("applies to the master, not to its sentinels", async () => {
    await setUser("token1", SECRET);
    await using sentinel = await FakeServer.start(sentinelFor(server.port));
    const { cache } = open({
      kvUrl: `redis+sentinel://127.0.0.1:${sentinel.port}/main`,
      password: () => ({ username: "token1", password: SECRET }),
    });
    await isUsable(cache);
    expect((await clientsOf()).map(({ user }) => user)).toEqual(["token1"]);
    expect(sentinel.commands.flat()).not.toContain(SECRET);
  });
});

describe("TLS files", () => {
  it("are read again at every connection", async () => {
    const [ours, strangers] = await Promise.all([makeCertificates(), makeCertificates()]);
    await using secure = await startRedis({ tls: ours });
    const ca = join(dirname(ours.caFile), "renewed.crt");
    copyFileSync(ours.caFile, ca);
    const { cache } = open({
      kvUrl: `rediss://localhost:${secure.port}?tls_ca_file=${encodeURIComponent(ca)}`,
    });
    await isUsable(cache);
    copyFileSync(strangers.caFile, ca);
    await secure.cli("CLIENT", "KILL", "TYPE", "normal");
    await until(async () => (await failure(cache.get("k"))) instanceof ConnectionError, {
      what: "another authority is not trusted",
    });
    copyFileSync(ours.caFile, ca);
    await until(() => isUsable(cache).then(() => true), { what: "the renewed file is used" });
  });
});
