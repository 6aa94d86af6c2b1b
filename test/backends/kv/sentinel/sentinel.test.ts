// A store behind real sentinels: the contract, and a master that changes.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished, test } from "vitest";
import { BackendError, ConnectionError } from "../../../../src/core/errors.ts";
import { backendContract } from "../../../../src/testing/index.ts";
import { makeCertificates } from "../../../support/certificate.ts";
import { FakeServer, sentinelFor } from "../../../support/kv/fake-server.ts";
import { type OpenedBackend, opened } from "../../../support/kv/opened.ts";
import { kvSubject } from "../../../support/kv/subject.ts";
import { binaryOf } from "../../../support/machine.ts";
import { failure, stampFor, works } from "../../../support/opened.ts";
import { soon } from "../../../support/pace.ts";
import { isRedisReady, type RedisServer, startRedis } from "../../../support/redis.ts";
import { redisCli } from "../../../support/redis-cli.ts";
import { type RedisSentinel, startSentinel } from "../../../support/redis-sentinel.ts";
import { startOnFreePort } from "../../../support/server-process.ts";
import { until } from "../../../support/until.ts";

let sentinel: RedisSentinel;

beforeAll(async () => {
  sentinel = await startSentinel();
  await Promise.all([
    // On a busy machine nobody may consider the master dead before a test intends it.
    tellSentinels("down-after-milliseconds", "30000"),
    // Sentinels start no failover for twice this time after the last one.
    tellSentinels("failover-timeout", "1000"),
    // Otherwise a new replica waits five seconds for others to come.
    ...sentinel.servers.map((server) => server.cli("CONFIG", "SET", "repl-diskless-sync-delay", "0")),
  ]);
});
afterAll(() => sentinel.stop());

async function tellSentinels(setting: string, value: string): Promise<void> {
  await Promise.all(
    sentinel.sentinels.map(({ port }) => redisCli(port, {}, ["SENTINEL", "SET", "main", setting, value])),
  );
}

/** Queries the first sentinel. */
const ask = (...args: string[]): Promise<string> => redisCli(sentinel.sentinels[0]!.port, {}, args);

/** Checks that this server holds what the backend wrote. */
const holds = async (server: RedisServer, key: string): Promise<boolean> =>
  (await server.cli("EXISTS", key)) === "1";

/** Waits until both servers have their roles, so that the next failover can begin. */
async function settled(): Promise<void> {
  await until(
    async () => {
      const master = await sentinel.master();
      const replication = await master.cli("INFO", "replication");
      const facts = await ask("SENTINEL", "REPLICAS", "main");
      return /slave0:.*state=online/.test(replication) && !/s_down|disconnected/.test(facts);
    },
    { what: "the replica follows the master" },
  );
}

/** Writes continuously; each call is bounded, and the longest time without a success is returned at the end. */
function traffic(backend: OpenedBackend): {
  stop(): Promise<{ longestGapMs: number; longestCallMs: number }>;
} {
  let isOver = false;
  let longestGapMs = 0;
  let longestCallMs = 0;
  let count = 0;
  let last = performance.now();
  const write = async (): Promise<true> => {
    const began = performance.now();
    try {
      await backend.write(stampFor(`traffic:${count++ % 10}`));
      longestGapMs = Math.max(longestGapMs, performance.now() - last);
      last = performance.now();
      return true;
    } finally {
      longestCallMs = Math.max(longestCallMs, performance.now() - began);
    }
  };
  const run = async (): Promise<void> => {
    // As fast as the answers come; while there are none, again and again.
    while (!isOver) await until(() => isOver || write(), { what: "a write succeeds" });
  };
  const running = run();
  // Also when the test fails: a backend that is written to reopens.
  onTestFinished(() => {
    isOver = true;
  });
  return {
    stop: async () => {
      isOver = true;
      await running;
      return { longestGapMs, longestCallMs };
    },
  };
}

describe("behind sentinels", () => {
  backendContract(
    kvSubject("kv", () => sentinel.url),
    { describe, it: it.concurrent },
  );
  backendContract(
    kvSubject("kv with a near tier", () => sentinel.url, { nearCache: true }),
    { describe, it: it.concurrent },
  );
});

describe("a master's name", () => {
  test("that the sentinels do not know is a clear error, quickly and every time", async () => {
    await using backend = opened(sentinel.url.replace(/main$/, "mian"));
    const began = performance.now();
    for (const call of [() => backend.connect(), () => backend.read("k"), () => backend.ping()]) {
      const error = await failure(call());
      expect(error).toBeInstanceOf(ConnectionError);
      expect(error.message).toContain('no sentinel names the master "mian"');
      expect(error.hint).toContain("Check the name in kv_url");
    }
    expect(performance.now() - began).toBeLessThan(soon(1_000));
  });
});

describe("the master", () => {
  beforeAll(() => tellSentinels("down-after-milliseconds", "500"));

  test("is abandoned when a sentinel announces another one, which is used immediately", async () => {
    await settled();
    const before = await sentinel.master();
    await using backend = opened(sentinel.url, { poolSize: 2 });
    await backend.connect();
    expect(await works(backend, "before")).toBe(true);
    expect(await holds(before, "before")).toBe(true);
    const running = traffic(backend);
    let askAt = 0;
    const after = await until(
      async () => {
        const master = await sentinel.master();
        if (master !== before) return master;
        // On a busy machine sentinels abandon a failover that takes too long: then it is requested again.
        if (performance.now() < askAt) return undefined;
        askAt = performance.now() + 4_000;
        await ask("SENTINEL", "FAILOVER", "main").catch(() => {});
        return undefined;
      },
      { what: "the sentinels name the other server" },
    );
    await until(async () => (await works(backend, "after")) && (await holds(after, "after")), {
      what: "the backend writes to it",
      timeoutMs: 3_000,
    });
    const { longestGapMs, longestCallMs } = await running.stop();
    // The former master accepts writes for another ten seconds, which are lost: nobody may stay connected to it.
    expect(await before.cli("ROLE")).toContain("master");
    expect(longestGapMs).toBeLessThan(soon(4_000));
    expect(longestCallMs).toBeLessThan(soon(1_500));
    await before.cli("REPLICAOF", "127.0.0.1", String(after.port));
  });

  test("is found even if the first sentinel is frozen, before commands time out", async () => {
    const [first] = sentinel.sentinels;
    first!.freeze();
    try {
      await using backend = opened(sentinel.url);
      const began = performance.now();
      expect(await works(backend)).toBe(true);
      expect(performance.now() - began).toBeLessThan(soon(900));
      // Half of the sentinels may be gone altogether: discovered ones stand in.
      await using heard = opened(`redis+sentinel://127.0.0.1:${sentinel.sentinels[2]!.port}/main`);
      expect(await works(heard)).toBe(true);
    } finally {
      first!.thaw();
    }
  });

  test("leaves no connection behind after disconnecting", async () => {
    const clients = async (): Promise<number> => {
      const ports = [...sentinel.sentinels, ...sentinel.servers].map(({ port }) => port);
      const lists = await Promise.all(ports.map((port) => redisCli(port, {}, ["CLIENT", "LIST"])));
      return lists
        .join("\n")
        .split("\n")
        .filter((line) => line.includes("name=xcache")).length;
    };
    const backend = opened(sentinel.url);
    await backend.connect();
    await until(async () => (await clients()) >= 2, { what: "master and sentinel are connected" });
    await backend.disconnect();
    await until(async () => (await clients()) === 0, { what: "nobody is" });
  });

  test("may hang: the other server is used as soon as the sentinels have agreed on it", async () => {
    await settled();
    const before = await sentinel.master();
    const other = sentinel.servers.find((server) => server !== before)!;
    await using backend = opened(sentinel.url, { poolSize: 2 });
    expect(await works(backend, "before")).toBe(true);
    const running = traffic(backend);
    before.freeze();
    try {
      await until(async () => (await works(backend, "after-hang")) && (await holds(other, "after-hang")), {
        what: "service resumes by itself",
      });
    } finally {
      before.thaw();
    }
    const { longestCallMs } = await running.stop();
    expect(longestCallMs).toBeLessThan(soon(1_500));
    // Sentinels take ten seconds to make it a replica.
    await before.cli("REPLICAOF", "127.0.0.1", String(other.port));
  });

  test("may die: the other server is used as soon as the sentinels have agreed on it", async () => {
    await settled();
    const before = await sentinel.master();
    const other = sentinel.servers.find((server) => server !== before)!;
    await using backend = opened(sentinel.url);
    expect(await works(backend, "before")).toBe(true);
    const running = traffic(backend);
    await before.kill();
    // A read waits for the other server as long as its deadline allows.
    await backend.read("k").catch((error: unknown) => expect(error).toBeInstanceOf(BackendError));
    await until(async () => (await works(backend, "after")) && (await holds(other, "after")), {
      what: "service resumes by itself",
    });
    const { longestCallMs } = await running.stop();
    expect(longestCallMs).toBeLessThan(soon(1_500));
  });
});

describe("sentinels with their own login and TLS", () => {
  test("are queried with it", async () => {
    await using master = await startRedis();
    await using guarded = await startOnFreePort("sentinel", ({ port, folder }) => {
      const file = join(folder, "sentinel.conf");
      const lines = [
        `port ${port}`,
        "bind 127.0.0.1",
        `dir ${folder}`,
        "requirepass default-secret",
        "user watcher on >watcher-secret ~* &* +@all",
        `sentinel monitor main 127.0.0.1 ${master.port} 1`,
      ];
      writeFileSync(file, `${lines.join("\n")}\n`);
      const isReady = (pid: number): Promise<boolean> => isRedisReady({ port }, pid, "default-secret");
      return { binary: binaryOf("redis-server"), args: [file, "--sentinel"], isReady };
    });
    const url = `redis+sentinel://127.0.0.1:${guarded.port}/main`;
    for (const login of [
      "sentinel_password=default-secret",
      "sentinel_username=watcher&sentinel_password=watcher-secret",
    ]) {
      await using backend = opened(`${url}?${login}`);
      expect(await works(backend)).toBe(true);
    }
    for (const login of ["", "?sentinel_password=wrong-secret"]) {
      await using backend = opened(`${url}${login}`);
      const error = await failure(backend.connect());
      expect(error).toBeInstanceOf(ConnectionError);
      expect(error.hint).toContain("sentinel_password");
      expect(`${error.stack} ${JSON.stringify(error)}`).not.toContain("secret");
    }
  });

  test("receive their own password and the store's certificate authority, and the master receives its own", async () => {
    const certificates = await makeCertificates();
    await using master = await startRedis({ tls: certificates, requirepass: "data-secret" });
    const answer = sentinelFor(master.port, "localhost");
    await using fake = await FakeServer.start(
      (command, client) => {
        if (command[0] === "HELLO" && !command.includes("sentinel-secret"))
          return "-NOAUTH HELLO must be called with the client already authenticated\r\n";
        if (command[0] === "AUTH")
          return "-WRONGPASS invalid username-password pair or user is disabled.\r\n";
        return answer(command, client);
      },
      { tls: { cert: readFileSync(certificates.certFile), key: readFileSync(certificates.keyFile) } },
    );
    const url = (password: string): string =>
      `rediss+sentinel://:data-secret@localhost:${fake.port}/main?sentinel_password=${password}&tls_ca_file=${encodeURIComponent(certificates.caFile)}`;
    await using backend = opened(url("sentinel-secret"));
    expect(await works(backend)).toBe(true);
    await using wrong = opened(url("wrong-secret"));
    const error = await failure(wrong.connect());
    expect(error).toBeInstanceOf(ConnectionError);
    expect(error.hint).toContain("sentinel_password");
    expect(`${error.stack} ${JSON.stringify(error)}`).not.toContain("secret");
  });
});
