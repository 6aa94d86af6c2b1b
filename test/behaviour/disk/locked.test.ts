// A process that is stopped while it holds the store's lock: reads go on, changes end in time, and everything resumes after it.
import { join } from "node:path";
import { expect, test } from "vitest";
import { DiskBackend } from "../../../src/backends/disk/backend.ts";
import { readBootId } from "../../../src/backends/disk/lock/marker-owner.ts";
import { OperationTimeoutError } from "../../../src/core/errors.ts";
import { XCache } from "../../../src/xcache.ts";
import { DiskProcess } from "../../support/disk/disk-process.ts";
import { freshFolders } from "../../support/disk/folder.ts";
import { opened } from "../../support/disk/opened.ts";
import { item } from "../../support/opened.ts";
import { programFile } from "../../support/own-process.ts";
import { soon } from "../../support/pace.ts";
import { until } from "../../support/until.ts";

const freshFolder = freshFolders();

/** Stops itself in the middle of a commit. */
async function holder(directory: string): Promise<DiskProcess> {
  const own = new DiskProcess(
    `
    import { open } from "lmdb";
    const store = open({ path: settings.path, noSync: true, overlappingSync: false });
    store.transactionSync(() => process.kill(process.pid, "SIGSTOP"));
    say("let go");
    await nextMessage();
  `,
    { directory, path: join(directory, `boot-${readBootId()}`) },
  );
  await own.stopped();
  return own;
}

for (const [ending, signal] of [
  ["goes on", "SIGCONT"],
  ["is killed", "SIGKILL"],
] as const) {
  test(`a change ends by its deadline while the lock is held, reads go on, and when the holder ${ending} so do changes`, async () => {
    const directory = freshFolder();
    const backend = opened({ directory }, { operationTimeoutMs: 300 });
    await backend.write(item("before"));
    await using stopped = await holder(directory);
    let turns = 0;
    const turning = setInterval(() => turns++, 5);
    const began = performance.now();
    const changes = await Promise.allSettled([
      backend.write(item("during")),
      backend.take("before"),
      backend.swap("other", undefined, { record: item("other").record, lifetimeMs: 1_000 }),
    ]);
    for (const change of changes) {
      expect(change.status === "rejected" && change.reason).toBeInstanceOf(OperationTimeoutError);
    }
    expect(performance.now() - began).toBeLessThan(soon(2_000));
    expect(turns).toBeGreaterThan(3);
    clearInterval(turning);
    expect(await backend.read("before")).toBeDefined();
    expect(backend.answersInPart()).toBe(true);
    // From now on nothing queues behind what hangs.
    await expect(backend.write(item("refused"))).rejects.toBeInstanceOf(OperationTimeoutError);
    // Another client opens meanwhile, and reads.
    const late = opened({ directory });
    await late.connect();
    expect(await late.read("before")).toBeDefined();
    stopped.signal(signal);
    await until(() => !backend.answersInPart(), { what: "the lock is free" });
    await backend.write(item("after"));
    expect(await backend.read("after")).toBeDefined();
    expect(await backend.read("refused")).toBeUndefined();
    await Promise.all([backend.disconnect(), late.disconnect()]);
  });
}

test("an invalidation that found the store locked is delivered before its entry is served, and reads keep the circuit closed", async () => {
  const directory = freshFolder();
  const cache = new XCache({
    backend: new DiskBackend({ directory }),
    operationTimeout: 0.3,
    circuitBreaker: { failureThreshold: 2, resetTimeout: 60 },
  });
  await cache.set("key", "old", { tags: ["tag"] });
  await cache.set("other", "kept");
  await using stopped = await holder(directory);
  for (let at = 0; at < 3; at++) {
    await expect(cache.invalidateTags("tag")).rejects.toBeInstanceOf(OperationTimeoutError);
  }
  await expect(cache.get("key")).rejects.toBeInstanceOf(OperationTimeoutError);
  expect(await cache.get("other")).toBe("kept");
  stopped.signal("SIGCONT");
  const value = await until(async () => ({ is: await cache.get("key") }), {
    what: "the store answers for the key",
  });
  expect(value.is).toBeUndefined();
  await cache.disconnect();
});

test("a process whose change hangs can disconnect, and ends when asked to", async () => {
  const directory = freshFolder();
  const first = opened({ directory });
  await first.connect();
  await first.disconnect();
  await using stopped = await holder(directory);
  await using own = new DiskProcess(
    `
    const backend = openBackend({ operationTimeoutMs: 200 });
    await backend.connect();
    await backend.write({ key: "key", record: entry("key"), lifetimeMs: 1_000 }).catch((error) => say(error.code));
    await backend.disconnect();
    say("disconnected");
    process.exit(0);
  `,
    { directory },
  );
  await own.heard("OPERATION_TIMEOUT");
  await own.heard("disconnected");
  // Node itself would wait for the thread that waits for the lock.
  expect(await own.ended()).toEqual({ code: null, signal: "SIGKILL" });
  expect(stopped.pid).toBeGreaterThan(0);
});

test("a commit that also makes room is known to hang, and nothing queues behind it", async () => {
  const directory = freshFolder();
  const backend = opened({ directory, maxBytes: 2 ** 20 }, { operationTimeoutMs: 300 });
  const large = Buffer.alloc(100_000);
  // More than fits, so that each evicts an older one.
  for (let at = 0; at < 15; at++) await backend.write(item(`key${at}`, large));
  await using stopped = await holder(directory);
  await expect(backend.write(item("more", large))).rejects.toBeInstanceOf(OperationTimeoutError);
  expect(backend.answersInPart()).toBe(true);
  stopped.signal("SIGKILL");
  await until(() => !backend.answersInPart(), { what: "the lock is free" });
  await backend.disconnect();
});

test("a process that exits right after a change ends while the lock is held, and with its own exit code when it is not", async () => {
  const directory = freshFolder();
  const first = opened({ directory });
  await first.connect();
  await first.disconnect();
  const script = `
    const backend = openBackend({ operationTimeoutMs: 200 });
    await backend.connect();
    backend.write({ key: "key", record: entry("key"), lifetimeMs: 60_000 }).catch(() => {});
    // Immediately, or when a thread has started on it.
    const exit = (turns) => turns === 0 ? process.exit(3) : setImmediate(exit, turns - 1);
    exit(settings.turns);
  `;
  for (const turns of [0, 1, 2]) {
    await using free = new DiskProcess(script, { directory, turns });
    expect(await free.ended(), `${turns} turns`).toEqual({ code: 3, signal: null });
  }
  expect(await first.connect().then(() => first.read("key"))).toBeDefined();
  await first.disconnect();
  await using stopped = await holder(directory);
  await using locked = new DiskProcess(script, { directory, turns: 2 });
  expect(await locked.ended()).toEqual({ code: null, signal: "SIGKILL" });
  expect(stopped.pid).toBeGreaterThan(0);
});

test("a thread that ends while its change hangs does not end the process", async () => {
  const directory = freshFolder();
  const backend = opened({ directory });
  await backend.write(item("key"));
  const file = programFile(`
    import { parentPort, workerData } from "node:worker_threads";
    import { DiskBackend } from "./backends/disk/backend.js";
    import { systemClock } from "./core/clock.js";
    const backend = new DiskBackend({ directory: workerData.directory });
    backend.open({ clock: systemClock, operationTimeoutMs: 100, connectTimeoutMs: 1_000, report() {}, evicted() {} });
    const record = { kind: "stamp", version: systemClock.token(), expires: Infinity };
    await backend.write({ key: "late", record, lifetimeMs: Infinity }).catch((error) => parentPort.postMessage(error.code));
    process.exit(0);
  `);
  await using stopped = await holder(directory);
  // In a child process: otherwise this one would be killed.
  await using own = new DiskProcess(
    `
    import { Worker } from "node:worker_threads";
    const worker = new Worker(settings.file, { workerData: { directory: settings.directory } });
    worker.once("message", (code) => say(code));
    worker.once("exit", () => say("thread ended"));
    await nextMessage();
    say("alive");
  `,
    { directory, file },
  );
  await own.heard("OPERATION_TIMEOUT");
  stopped.signal("SIGKILL");
  await own.heard("thread ended");
  own.tell();
  await own.heard("alive");
  await backend.disconnect();
});
