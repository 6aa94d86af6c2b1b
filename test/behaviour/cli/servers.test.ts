// The program on real servers: Redis, a cluster, memcached; unreachable ones, many keys, interrupts and closed pipes.
import { once } from "node:events";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { makeCertificates } from "../../support/certificate.ts";
import { type MemcachedServer, startMemcached } from "../../support/memcached.ts";
import { type RedisServer, startRedis } from "../../support/redis.ts";
import { type RedisCluster, startCluster } from "../../support/redis-cluster.ts";
import { until } from "../../support/until.ts";
import { jsonLines, start } from "./installed.ts";
import { sharedProcess } from "./shared-process.ts";
import { testFolder, withCache } from "./store.ts";

const xcache = sharedProcess();

const PASSWORD = "s3cret/pa?ss";
const MANY = 60_000;

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis({ requirepass: PASSWORD, maxmemory: "512mb", maxmemoryPolicy: "noeviction" });
  await withCache({ kvUrl: redis.url, operationTimeout: 20 }, async (cache) => {
    for (let at = 0; at < MANY; at += 5_000) {
      const batch = Array.from({ length: 5_000 }, (_, i) => [`key:${at + i}`, at + i] as const);
      await cache.setMany(batch, { ttl: 3_600 });
    }
    await cache.set("user:ada", 1, { tags: ["users"] });
  });
});
afterAll(() => redis.stop());

const withRedis = (...args: string[]) => xcache(args, { env: { XCACHE_KV_URL: redis.url } });

describe("on Redis", () => {
  test("ping prints the server and its version, and never the password", async () => {
    const [text, json] = await Promise.all([withRedis("ping"), withRedis("ping", "--json")]);
    expect(text.stdout).toMatch(
      /\nstore {4}redis \d+\.\d+\.\d+\naddress {2}redis:\/\/\*\*\*@127\.0\.0\.1:\d+\/0\n$/,
    );
    expect(jsonLines(json)[0]).toMatchObject({ server: "redis", backend: "kv" });
    for (const { stdout, stderr } of [text, json]) expect(stdout + stderr).not.toContain("s3cret");
  });

  test("doctor finds what is wrong with the eviction policy, hides the password, and exits 1", async () => {
    const { code, stdout } = await withRedis("doctor", "--verbose");
    expect(stdout).toMatch(/ok store: redis \d/);
    expect(stdout).toMatch(/ok tracking: /);
    expect(stdout).toMatch(/problem eviction: noeviction, .* of 512 MiB\n {6}→ .*allkeys-lru/);
    expect(stdout).toMatch(/ok clock: /);
    expect(stdout).not.toContain("s3cret");
    expect(code).toBe(1);
  });

  test("list starts to print at once and uses bounded memory, however many keys there are", async () => {
    await redis.cli("CONFIG", "RESETSTAT");
    const child = start(["list"], { env: { XCACHE_KV_URL: redis.url } });
    let complaint = "";
    child.stderr?.on("data", (text) => {
      complaint += text;
    });
    const lines = createInterface({ input: child.stdout! });
    const seen = new Set<string>();
    lines.on("line", (line) => seen.add(line));
    await once(lines, "line");
    lines.pause();
    // It has taken only a few of more than sixty steps: it prints what it finds, and waits for its reader.
    const steps = /cmdstat_scan:calls=(\d+)/.exec(await redis.cli("INFO", "commandstats"))?.[1];
    expect(Number(steps)).toBeLessThan(30);
    lines.resume();
    await until(() => seen.size > MANY / 2, { what: "half of the keys are listed" });
    const status = readFileSync(`/proc/${child.pid}/status`, "utf8");
    await once(child, "close");
    expect(seen.size).toBe(MANY + 1);
    expect(Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1]) / 1_024).toBeLessThan(150);
    expect([child.exitCode, complaint]).toEqual([0, ""]);
  });

  test("an interrupted list has printed what it found, reports the interruption, and exits 130", async () => {
    const child = start(["list"], { env: { XCACHE_KV_URL: redis.url } });
    let complaint = "";
    child.stderr?.on("data", (text) => {
      complaint += text;
    });
    let listed = 0;
    const lines = createInterface({ input: child.stdout! });
    lines.on("line", () => listed++);
    await once(lines, "line");
    child.kill("SIGINT");
    await once(child, "close");
    expect(child.exitCode).toBe(130);
    expect(listed).toBeGreaterThan(0);
    expect(listed).toBeLessThan(MANY);
    expect(complaint).toMatch(/^interrupted after [\d,]+ keys; there may be more\n$/);
    expect(Number(/[\d,]+/.exec(complaint)?.[0].replaceAll(",", ""))).toBe(listed);
  });

  test("an interrupted search prints the best it has found, and an interrupted count removes nothing", async () => {
    const args = [
      ["search", "key:9", "--limit", "1"],
      ["invalidate", "--pattern", "key:*", "--yes"],
    ];
    for (const each of args) {
      const child = start(each, { env: { XCACHE_KV_URL: redis.url } });
      const [out, complaint]: [string[], string[]] = [[], []];
      child.stdout?.on("data", (text) => out.push(String(text)));
      child.stderr?.on("data", (text) => complaint.push(String(text)));
      await until(async () => /cmd=(scan|getrange|strlen)/.test(await redis.cli("CLIENT", "LIST")), {
        what: "the scan is running",
      });
      child.kill("SIGINT");
      await once(child, "close");
      expect(child.exitCode).toBe(130);
      expect(complaint.join("")).toContain("interrupted");
    }
    expect(Number(await redis.cli("DBSIZE"))).toBeGreaterThan(MANY);
  });

  test("a reader that closes the pipe causes no error", async () => {
    const child = start(["list"], { env: { XCACHE_KV_URL: redis.url } });
    let complaint = "";
    child.stderr?.on("data", (text) => {
      complaint += text;
    });
    await once(child.stdout!, "data");
    child.stdout?.destroy();
    await once(child, "exit");
    expect([child.exitCode, complaint]).toEqual([0, ""]);
  });

  test("the password may be a variable of its own, which doctor does not show", async () => {
    const env = { XCACHE_KV_URL: `redis://127.0.0.1:${redis.port}`, XCACHE_PASSWORD: PASSWORD };
    const [ping, text, json] = await Promise.all([
      xcache(["ping"], { env }),
      xcache(["doctor", "--verbose"], { env }),
      xcache(["doctor", "--json"], { env }),
    ]);
    expect(ping.code).toBe(0);
    expect(text.stdout).toMatch(/ password +\*\*\* +env\n/);
    expect(jsonLines(json)[0]).toMatchObject({
      settings: expect.arrayContaining([
        { name: "password", value: "***", origin: "env" },
        { name: "username", value: null, origin: "default" },
      ]),
    });
    for (const { stdout, stderr } of [ping, text, json]) expect(stdout + stderr).not.toContain("s3cret");
  });

  test("a wrong password is named as the cause, and not shown", async () => {
    const { code, stderr } = await xcache(["ping", "--kv-url", redis.url.replace("s3cret", "wr0ng")]);
    expect(code).toBe(3);
    expect(stderr).toMatch(/WRONGPASS|invalid|password/i);
    expect(stderr).not.toContain("wr0ng");
  });
});

describe("on a store that cannot be reached", () => {
  const url = "redis://user:s3cret@127.0.0.1:1/0";

  test.each([["ping"], ["stats"], ["list"], ["get", "k"], ["clear", "--yes"], ["doctor"]])(
    "%s exits 3, without the password",
    async (...args) => {
      const { code, stdout, stderr } = await xcache([...args, "--kv-url", url, "--timeout", "2s"]);
      expect(code).toBe(3);
      expect(stdout + stderr).toMatch(/127\.0\.0\.1:1/);
      expect(stdout + stderr).not.toContain("s3cret");
    },
  );

  test("health says unhealthy and exits 1", async () => {
    const { code, stdout } = await xcache(["health", "--kv-url", url, "--timeout", "2s"]);
    expect([code, stdout.startsWith("unhealthy redis://***@127.0.0.1:1/0 ")]).toEqual([1, true]);
  });

  test("an error is JSON on stderr with --json", async () => {
    const { code, stdout, stderr } = await xcache(["list", "--json", "--kv-url", url, "--timeout", "2s"]);
    expect([code, stdout]).toEqual([3, ""]);
    expect(JSON.parse(stderr)).toEqual({
      error: {
        code: "CONNECTION_FAILED",
        message: expect.any(String),
        hint: expect.any(String),
        exit_code: 3,
      },
    });
  });
});

describe("on a cluster", () => {
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await startCluster({ replicas: 0 });
  });
  afterAll(() => cluster.stop());

  test("everything works as on one server", async () => {
    const run = (...args: string[]) => xcache(args, { env: { XCACHE_KV_URL: cluster.url } });
    await withCache({ kvUrl: cluster.url }, (cache) =>
      cache.setMany(
        Array.from({ length: 30 }, (_, at) => [`user:${at}`, at] as const),
        { tags: ["users"] },
      ),
    );
    expect((await run("ping")).stdout).toContain("cluster of 3 masters");
    expect((await run("list")).stdout.trimEnd().split("\n").sort()).toHaveLength(30);
    expect((await run("search", "user:17")).stdout).toMatch(/^100 {2}user:17\n/);
    expect((await run("stats", "--json")).stdout).toContain('"total_keys":30');
    expect((await run("get", "user:17")).stdout).toBe("17\n");
    expect((await run("tags", "user:17")).stdout).toBe("users\n");
    expect((await run("set", "extra", "1")).code).toBe(0);
    expect((await run("delete", "extra")).stdout).toBe("deleted 1 of 1 key\n");
    expect((await run("health")).stdout).toMatch(/^healthy /);
    expect((await run("doctor", "--verbose")).stdout).toMatch(/ok store: redis \S+, cluster of 3 masters/);
    const exported = await run("export", "-");
    expect(jsonLines(exported)).toHaveLength(30);
    expect((await run("invalidate", "--pattern", "user:*", "--yes")).stdout).toContain("removed 30 entries");
    const again = await xcache(["import", "-"], {
      env: { XCACHE_KV_URL: cluster.url },
      input: exported.stdout,
    });
    expect(again.stdout).toMatch(/^stored 30 entries/);
    expect((await run("invalidate", "--tags", "users", "--yes")).stdout).toContain("removed 30 entries");
    expect((await run("list")).stdout).toBe("");
  });
});

describe("on memcached", () => {
  let memcached: MemcachedServer;
  const folder = testFolder();
  beforeAll(async () => {
    memcached = await startMemcached();
    writeFileSync(join(folder, "in.jsonl"), '{"key":"in","value":1}\n');
  });
  afterAll(() => memcached.stop());
  const run = (...args: string[]) => xcache(args, { env: { XCACHE_KV_URL: memcached.url }, cwd: folder });

  test("the supported commands work", async () => {
    expect((await run("ping")).stdout).toMatch(/\nstore {4}memcached \d/);
    expect((await run("set", "k", '{"a":1}', "--tags", "t")).code).toBe(0);
    expect((await run("get", "k")).stdout).toBe('{\n  "a": 1\n}\n');
    expect((await run("tags", "k")).stdout).toBe("t\n");
    expect((await run("invalidate", "--tags", "t", "--dry-run")).stdout).toBe(
      'would remove all entries with the tag "t"\n',
    );
    expect((await run("invalidate", "--tags", "t", "--yes")).stdout).toBe(
      'removed all entries with the tag "t"\n',
    );
    expect((await run("get", "k")).code).toBe(1);
    expect((await run("import", "in.jsonl")).stdout).toMatch(/^stored 1 entry/);
    expect((await run("warm", "in.jsonl")).stdout).toMatch(/^stored 0 entries in .*, 1 already existed\n$/);
    expect((await run("delete", "in")).stdout).toBe("deleted 1 of 1 key\n");
    expect((await run("stats")).stdout).toMatch(/\nkeys .* on the whole server\n/);
    expect((await run("health", "--detailed")).code).toBe(0);
    expect((await run("doctor", "--verbose")).stdout).toMatch(/ok servers: 1 of 1 answer/);
    expect((await run("clear", "--yes")).code).toBe(0);
  });

  test.each([
    [["list"]],
    [["search", "k"]],
    [["export", "out.jsonl"]],
    [["stats", "--exact"]],
    [["invalidate", "--pattern", "k*", "--dry-run"]],
    [["invalidate", "--pattern", "k*", "--yes", "--no-count"]],
  ])("%j exits 4 and says what to do, and leaves nothing behind", async (args) => {
    const { code, stdout, stderr } = await run(...args);
    expect([code, stdout]).toEqual([4, ""]);
    expect(stderr).toMatch(/error: .*cannot list keys.*\nhint: /);
    expect(readdirSync(folder)).toEqual(["in.jsonl"]);
  });
});

describe("over a unix socket and over TLS", () => {
  test("the program finds the store by its address", async () => {
    const tls = await makeCertificates();
    await using socket = await startRedis({ unixsocket: true, requirepass: "s3cret" });
    await using secure = await startRedis({ tls, requirepass: "s3cret" });
    const trusting = `${secure.url}?tls_ca_file=${encodeURIComponent(tls.caFile)}`;
    for (const url of [socket.unixUrl ?? "", trusting]) {
      const run = (...args: string[]) => xcache(args, { env: { XCACHE_KV_URL: url } });
      expect((await run("set", "k", "1")).code).toBe(0);
      expect((await run("list")).stdout).toBe("k\n");
      const { code, stdout } = await run("ping");
      expect(code).toBe(0);
      expect(stdout).toMatch(/\nstore {4}redis \d+.*\naddress {2}\w+:\/\/\*\*\*@/);
      expect(stdout).not.toContain("s3cret");
    }
    const stranger = await xcache(["ping", "--kv-url", secure.url]);
    expect(stranger.code).toBe(3);
    expect(stranger.stderr).toMatch(/hint: .*tls_ca_file/);
  });
});
