// The server starters themselves: their servers answer, and nothing of them is left afterwards.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import ts from "typescript";
import { beforeAll, describe, expect, test } from "vitest";
import { makeCertificates } from "./certificate.ts";
import { exchange } from "./exchange.ts";
import { startMemcached } from "./memcached.ts";
import { reservePort } from "./port.ts";
import { startRedis } from "./redis.ts";
import { startCluster } from "./redis-cluster.ts";
import { startSentinel } from "./redis-sentinel.ts";
import {
  createRunFolder,
  identify,
  isSameProcess,
  recordServer,
  runFolder,
  sweepAbandonedRuns,
  sweepRun,
} from "./run-folder.ts";
import { until } from "./until.ts";

const isRunning = (pid: number): boolean => identify(pid) !== undefined;

describe("a Redis server", () => {
  test("answers, and after stop its process and folder are gone", async () => {
    const server = await startRedis();
    expect(await server.cli("PING")).toBe("PONG");
    const { pid, folder } = server;
    expect(isRunning(pid)).toBe(true);
    await server.stop();
    await server.stop();
    expect(isRunning(pid)).toBe(false);
    expect(existsSync(folder)).toBe(false);
  });

  test("hangs while frozen and answers again when thawed", async () => {
    await using server = await startRedis();
    server.freeze();
    const ping = exchange({ port: server.port, timeoutMs: 100 }, "PING\r\n", (reply) =>
      reply.includes("PONG"),
    );
    await expect(ping).rejects.toThrow("no reply");
    server.thaw();
    expect(await server.cli("PING")).toBe("PONG");
  });

  test("is stopped even while frozen", async () => {
    const server = await startRedis();
    const { pid } = server;
    server.freeze();
    await server.stop();
    expect(isRunning(pid)).toBe(false);
  });

  test("comes back on the same port, with its data only if persistent", async () => {
    await using forgetful = await startRedis();
    await using lasting = await startRedis({ appendonly: true });
    for (const server of [forgetful, lasting]) {
      const before = { port: server.port, pid: server.pid };
      await server.cli("SET", "k", "v");
      await server.restart("SIGKILL");
      expect(server.port).toBe(before.port);
      expect(server.pid).not.toBe(before.pid);
    }
    expect(await lasting.cli("GET", "k")).toBe("v");
    expect(await forgetful.cli("GET", "k")).toBe("");
  });

  test("obeys the memory limit, the password and the ACL it was given", async () => {
    await using server = await startRedis({
      maxmemory: "3mb",
      maxmemoryPolicy: "allkeys-lru",
      requirepass: "p@ss word",
    });
    expect(server.url).toBe(`redis://:p%40ss%20word@127.0.0.1:${server.port}/0`);
    expect(await server.cli("CONFIG", "GET", "maxmemory*")).toContain(String(3 * 1024 * 1024));
    expect(await server.cli("CONFIG", "GET", "maxmemory-policy")).toContain("allkeys-lru");
    expect(await exchange(server, "PING\r\n", (reply) => reply.endsWith("\r\n"))).toContain("NOAUTH");

    await using guarded = await startRedis({ acl: ["user default off", "user app on >secret ~app:* +@all"] });
    const asApp = ["--user", "app", "--pass", "secret", "--no-auth-warning"];
    expect(await guarded.cli(...asApp, "SET", "app:1", "v")).toBe("OK");
    await expect(guarded.cli(...asApp, "SET", "other", "v")).rejects.toThrow("NOPERM");
  });

  test("listens with TLS under a certificate of the test authority, and on a unix socket", async () => {
    await using server = await startRedis({ tls: await makeCertificates(), unixsocket: true });
    expect(server.url).toBe(`rediss://localhost:${server.port}/0`);
    expect(await server.cli("PING")).toBe("PONG");
    expect(existsSync(new URL(server.unixUrl!).pathname)).toBe(true);
    const plain = exchange({ port: server.port }, "PING\r\n", (reply) => reply.includes("PONG"));
    await expect(plain).rejects.toThrow(/closed|ECONNRESET/);
  });

  test("that cannot start reports the reason", async () => {
    await expect(startRedis({ args: ["--no-such-setting", "1"] })).rejects.toThrow("no-such-setting");
  });
});

test("a memcached server answers with the limits it was given, restarts and is gone after stop", async () => {
  const server = await startMemcached({ memoryMb: 32, maxItemBytes: 2 * 1024 * 1024 });
  const settings = await exchange(server, "stats settings\r\n", (reply) => reply.endsWith("END\r\n"));
  expect(settings).toContain(`STAT maxbytes ${32 * 1024 * 1024}\r\n`);
  expect(settings).toContain(`STAT item_size_max ${2 * 1024 * 1024}\r\n`);
  const first = server.pid;
  await server.restart();
  const second = server.pid;
  await server.stop();
  expect(second).not.toBe(first);
  expect([first, second].filter(isRunning)).toEqual([]);
});

test("a cluster serves every slot from three masters with a replica each, and no node is left after stop", async () => {
  const cluster = await startCluster();
  const pids = cluster.nodes.map((node) => node.pid);
  expect(pids).toHaveLength(6);
  expect(await cluster.nodes[5]!.cli("CLUSTER", "INFO")).toContain("cluster_slots_ok:16384");
  expect(await cluster.masters()).toHaveLength(3);
  expect(await cluster.nodes[0]!.cli("-c", "SET", "{some}key", "v")).toBe("OK");
  await cluster.stop();
  expect(pids.filter(isRunning)).toEqual([]);
});

test("sentinels promote the replica when the master dies, and no process is left after stop", async () => {
  const sentinel = await startSentinel();
  const pids = [...sentinel.servers, ...sentinel.sentinels].map((server) => server.pid);
  const [first, second] = sentinel.servers;
  expect(await sentinel.master()).toBe(first);
  await first.kill();
  await until(async () => (await sentinel.master()) === second, { what: "the replica is promoted" });
  await until(async () => (await second.cli("INFO", "replication")).includes("role:master"), {
    what: "it serves",
  });
  await sentinel.stop();
  expect(pids.filter(isRunning)).toEqual([]);
});

describe("ports", () => {
  test("are never reserved twice at the same time and leave room for the cluster bus", async () => {
    const reservations = await Promise.all(Array.from({ length: 40 }, () => reservePort({ withBus: true })));
    const ports = reservations.map(({ port }) => port);
    for (const { release } of reservations) release();
    expect(new Set(ports).size).toBe(ports.length);
    expect(Math.max(...ports) + 10_000).toBeLessThan(32_768);
  });
});

describe("a process that started a server", () => {
  const parent = mkdtempSync(join(runFolder(), "parent-"));

  beforeAll(() => {
    const sources = import.meta.dirname;
    const compilerOptions = {
      module: ts.ModuleKind.ESNext,
      target: ts.ScriptTarget.ES2022,
      rewriteRelativeImportExtensions: true,
    };
    for (const name of readdirSync(sources).filter((each) => each.endsWith(".ts"))) {
      const { outputText } = ts.transpileModule(readFileSync(join(sources, name), "utf8"), {
        compilerOptions,
      });
      writeFileSync(join(parent, name.replace(/ts$/, "js")), outputText);
    }
    writeFileSync(join(parent, "package.json"), '{ "type": "module" }');
  });

  const startParent = async (ending: string) => {
    const script = `import { startRedis } from "./redis.js"; console.log((await startRedis()).pid); ${ending}`;
    writeFileSync(join(parent, "main.js"), script);
    const folder = createRunFolder();
    const env = { ...process.env, XCACHE_TEST_RUN_FOLDER: folder };
    const child = spawn(process.execPath, ["main.js"], {
      cwd: parent,
      env,
      stdio: ["ignore", "pipe", "ignore"],
    });
    const exited = once(child, "exit");
    const [line] = (await once(child.stdout, "data")) as [Buffer];
    return { child, exited, folder, serverPid: Number(line) };
  };

  test.each([
    ["ends", "process.exit(0)"],
    ["throws", "throw new Error('failed')"],
    ["is asked to end", "process.kill(process.pid, 'SIGTERM'); setInterval(() => {}, 1000)"],
  ])("takes the server with it when it %s", async (_, ending) => {
    const { exited, folder, serverPid } = await startParent(ending);
    expect(serverPid).toBeGreaterThan(1);
    await exited;
    await until(() => !isRunning(serverPid), { what: "the server is gone" });
    expect(sweepRun(folder)).toEqual([]);
  });

  test("leaves it to the sweep when it is killed", async () => {
    const { exited, folder, serverPid } = await startParent("process.kill(process.pid, 'SIGKILL')");
    await exited;
    expect(isRunning(serverPid)).toBe(true);
    expect(sweepRun(folder)).toEqual([serverPid]);
    await until(() => !isRunning(serverPid), { what: "the server is gone" });
  });
});

test("a run's folder lies where no packages are found above it", () => {
  const lending = mkdtempSync(join(runFolder(), "lending-"));
  const bare = mkdtempSync(join(runFolder(), "bare-"));
  mkdirSync(join(lending, "node_modules"));
  const folder = createRunFolder([join(lending, "missing"), lending, bare]);
  expect(dirname(folder)).toBe(bare);
  sweepRun(folder);
});

describe("a run that did not end its servers", () => {
  const startStranger = async () => {
    const child = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"], { stdio: "ignore" });
    await once(child, "spawn");
    return { pid: child.pid!, exited: once(child, "exit"), end: () => child.kill("SIGKILL") };
  };

  test("has exactly those ended by the sweep, and its folder removed", async () => {
    const folder = createRunFolder();
    const [ours, notOurs] = [await startStranger(), await startStranger()];
    recordServer(ours.pid, folder);
    expect(sweepRun(folder)).toEqual([ours.pid]);
    await ours.exited;
    expect(isRunning(notOurs.pid)).toBe(true);
    expect(existsSync(folder)).toBe(false);
    notOurs.end();
  });

  test("never has a process ended that merely took over the id of one of its servers", async () => {
    const folder = createRunFolder();
    const reused = await startStranger();
    writeFileSync(
      join(folder, "pids", `${reused.pid}.json`),
      JSON.stringify({ pid: reused.pid, began: "earlier" }),
    );
    expect(sweepRun(folder)).toEqual([]);
    expect(isRunning(reused.pid)).toBe(true);
    reused.end();
  });

  test("is swept by the next run only when its owner is gone", async () => {
    const parent = mkdtempSync(join(runFolder(), "parent-"));
    const [left, inUse] = [await startStranger(), await startStranger()];
    for (const [name, server, owner] of [
      ["xcache-test-abandoned", left, { pid: process.pid, began: "earlier" }],
      ["xcache-test-alive", inUse, identify(process.pid)],
    ] as const) {
      mkdirSync(join(parent, name, "pids"), { recursive: true });
      writeFileSync(join(parent, name, "owner.json"), JSON.stringify(owner));
      recordServer(server.pid, join(parent, name));
    }
    expect(sweepAbandonedRuns([parent])).toEqual([left.pid]);
    await left.exited;
    expect(isSameProcess(identify(inUse.pid)!)).toBe(true);
    expect(existsSync(join(parent, "xcache-test-alive"))).toBe(true);
    inUse.end();
    sweepRun(parent);
  });
});
