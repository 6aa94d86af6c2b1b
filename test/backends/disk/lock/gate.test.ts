// Opening a store and changing it exclude each other: a thread that is stopped in either delays the other for a bounded
// time, and one that has ended delays nobody.
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { describe, expect, test } from "vitest";
import { Gate, openApart } from "../../../../src/backends/disk/lock/gate.ts";
import { MarkerFolder } from "../../../../src/backends/disk/lock/marker.ts";
import { readBootId } from "../../../../src/backends/disk/lock/marker-owner.ts";
import { type Clock, systemClock } from "../../../../src/core/clock.ts";
import { OperationTimeoutError } from "../../../../src/core/errors.ts";
import { DiskProcess } from "../../../support/disk/disk-process.ts";
import { freshFolders } from "../../../support/disk/folder.ts";
import { opened } from "../../../support/disk/opened.ts";
import { item } from "../../../support/opened.ts";
import { programFile } from "../../../support/own-process.ts";
import { until } from "../../../support/until.ts";

const freshFolder = freshFolders();

const environmentIn = (directory: string): string => join(directory, `boot-${readBootId()}`);

/** Sends itself a signal while opening the store. */
const OPENER = `
  import { openApart } from "./backends/disk/lock/gate.js";
  const waiting = { clock: systemClock, limitMs: 1_000, busy: () => new Error("busy") };
  await openApart(settings.path, waiting, () => process.kill(process.pid, settings.signal));
  say("opened");
  await nextMessage();
`;

/** Sends itself a signal in the middle of a commit. */
const COMMITTER = `
  import { Gate } from "./backends/disk/lock/gate.js";
  const gate = new Gate(settings.path, systemClock);
  if (!gate.enter()) throw new Error("somebody opens the store");
  process.kill(process.pid, settings.signal);
  gate.leave();
  say("committed");
  await nextMessage();
`;

/** Tries to open the store, once per message. */
const NEWCOMER = `
  const backend = openBackend({ connectTimeoutMs: 2_000 });
  for (;;) {
    await backend.connect().then(
      () => say("opened"),
      ({ name, message, hint }) => say("refused", { name, message, hint }),
    );
    await nextMessage();
  }
`;

function signalling(script: string, directory: string, signal: NodeJS.Signals): DiskProcess {
  return new DiskProcess(script, { directory, path: environmentIn(directory), signal });
}

const ENDINGS = [
  ["goes on", "SIGCONT"],
  ["is killed", "SIGKILL"],
] as const;

test.each(ENDINGS)(
  "while a process is stopped as it opens, changes end by their deadline and reads go on; when it %s so do changes",
  async (_, signal) => {
    const directory = freshFolder();
    const backend = opened({ directory }, { operationTimeoutMs: 300 });
    // More than this test takes: the event it waits for comes long before.
    const patient = opened({ directory }, { operationTimeoutMs: 600_000 });
    await patient.write(item("before"));
    await backend.connect();
    await using stopped = signalling(OPENER, directory, "SIGSTOP");
    await stopped.stopped();
    await expect(backend.write(item("during"))).rejects.toBeInstanceOf(OperationTimeoutError);
    expect(backend.answersInPart()).toBe(true);
    expect(await backend.read("before")).toBeDefined();
    // Nothing queues behind what hangs, however much time it has.
    await expect(patient.take("before")).rejects.toBeInstanceOf(OperationTimeoutError);
    stopped.signal(signal);
    await until(() => !backend.answersInPart(), { what: "nobody opens any more" });
    await patient.write(item("after"));
    // What was abandoned at the gate was never handed over.
    expect(await backend.read("during")).toBeUndefined();
    expect(await backend.read("before")).toBeDefined();
    await Promise.all([backend.disconnect(), patient.disconnect()]);
  },
);

test.each(ENDINGS)(
  "while a process is stopped in a commit, others commit and a newcomer's error names that process; when it %s the newcomer gets in",
  async (_, signal) => {
    const directory = freshFolder();
    // Less than the newcomer waits: it makes nobody late.
    const backend = opened({ directory }, { operationTimeoutMs: 1_900 });
    await backend.write(item("before"));
    await using stopped = signalling(COMMITTER, directory, "SIGSTOP");
    await stopped.stopped();
    await using newcomer = new DiskProcess(NEWCOMER, { directory });
    let isRefused = false;
    const refusal = newcomer.heard("refused").finally(() => {
      isRefused = true;
    });
    for (let at = 0; !isRefused; at++) await backend.write(item(`key${at % 10}`));
    const refused = await refusal;
    expect(refused).toMatchObject({ name: "ConnectionError", hint: expect.stringContaining("kill it") });
    expect(refused.message).toMatch(
      new RegExp(`process(es)? .*\\b${stopped.pid}\\b.* its lock to commit or close`),
    );
    expect(refused.message).toContain(directory);
    stopped.signal(signal);
    newcomer.tell();
    await newcomer.heard("opened");
    await backend.disconnect();
  },
);

test("a commit does not begin during an opening, and an opening does not proceed during a commit", async () => {
  const directory = freshFolder();
  const environment = environmentIn(directory);
  const backend = opened({ directory });
  await backend.connect();
  const gate = new Gate(environment, systemClock);
  expect(gate.enter()).toBe(true);
  const done: string[] = [];
  // An opening that has waited for 50 ms lets commits go first: no time passes for this one.
  const began = systemClock.now();
  const clock: Clock = { ...systemClock, now: () => began };
  const waiting = { clock, limitMs: 10_000, busy: () => new Error("busy") };
  const opening = openApart(environment, waiting, () => {
    done.push("opened");
    expect(gate.enter()).toBe(false);
  });
  const written = backend.write(item("key")).then(() => done.push("written"));
  await until(() => existsSync(join(environment, "opening")), { what: "it shows that it opens" });
  expect(done).toEqual([]);
  gate.leave();
  await Promise.all([opening, written]);
  expect(done).toEqual(["opened", "written"]);
  gate.remove();
  await backend.disconnect();
});

test("an opening gives up when its time is over, and names the process that blocked it", async () => {
  const directory = freshFolder();
  const backend = opened({ directory });
  await backend.connect();
  const environment = environmentIn(directory);
  const gate = new Gate(environment, systemClock);
  expect(gate.enter()).toBe(true);
  let now = 0;
  const clock: Clock = {
    ...systemClock,
    now: () => now,
    after: (delayMs, run) => {
      now += delayMs;
      setImmediate(run);
      return { cancel: () => {} };
    },
  };
  const busy = (pids: readonly number[]): Error => new Error(`busy: ${pids.join()}`);
  const opening = openApart(environment, { clock, limitMs: 2_000, busy }, () => "opened");
  await expect(opening).rejects.toThrow(`busy: ${process.pid}`);
  // The last pause between two attempts may begin just before the end.
  expect(now).toBeGreaterThanOrEqual(2_000);
  expect(now).toBeLessThan(2_500);
  gate.remove();
  await backend.disconnect();
});

describe("a process that was killed", () => {
  test.each([
    ["as it opened", OPENER],
    ["in a commit", COMMITTER],
  ])("%s delays nobody, and what it left is removed", async (_, script) => {
    const directory = freshFolder();
    const first = opened({ directory });
    await first.write(item("key"));
    await first.disconnect();
    await using killed = signalling(script, directory, "SIGKILL");
    await killed.ended();
    const path = environmentIn(directory);
    const left = readdirSync(path, { recursive: true, encoding: "utf8" });
    expect(left.filter((name) => name.includes(`_${killed.pid}_`))).toHaveLength(1);
    const backend = opened({ directory }, { operationTimeoutMs: 2_000, connectTimeoutMs: 2_000 });
    await backend.write(item("other"));
    await backend.disconnect();
    expect(readdirSync(path).sort()).toEqual(["data.mdb", "lock.mdb"]);
  });
});

test("a process that ends with the store open blocks others from opening it until it is gone, and no longer", async () => {
  const directory = freshFolder();
  await using own = new DiskProcess(
    `
    import { MarkerFolder } from "./backends/disk/lock/marker.js";
    const backend = openBackend();
    await backend.connect();
    // Registered after the store's own hook: LMDB closes what is open when all of them have run.
    process.on("exit", () => {
      const signs = new MarkerFolder(settings.path, "changing", systemClock).raised();
      writeSync(1, JSON.stringify(signs.map(({ pid }) => pid)));
    });
  `,
    { directory, path: environmentIn(directory) },
  );
  // Nothing but the channel to this process keeps it alive.
  expect(await own.ended(), own.errors).toEqual({ code: 0, signal: null });
  expect(JSON.parse(own.output)).toEqual([own.pid]);
  const backend = opened({ directory }, { connectTimeoutMs: 2_000 });
  await backend.connect();
  await backend.disconnect();
});

test("a thread that is terminated in a commit delays nobody, even though its process lives", async () => {
  const directory = freshFolder();
  const backend = opened({ directory });
  await backend.connect();
  const path = environmentIn(directory);
  const file = programFile(`
    import { parentPort, workerData } from "node:worker_threads";
    import { Gate } from "./backends/disk/lock/gate.js";
    import { systemClock } from "./core/clock.js";
    parentPort.on("message", () => {});
    parentPort.postMessage(new Gate(workerData.path, systemClock).enter());
  `);
  const worker = new Worker(file, { workerData: { path } });
  expect(await new Promise((resolve) => worker.once("message", resolve))).toBe(true);
  const changes = new MarkerFolder(path, "changing", systemClock);
  expect(changes.raised().map(({ pid }) => pid)).toEqual([process.pid]);
  await worker.terminate();
  expect(changes.raised()).toEqual([]);
  await backend.disconnect();
});

test("the gate of a folder that does not exist lets everything pass: nobody can open it", async () => {
  const path = join(freshFolder(), "gone");
  const gate = new Gate(path, systemClock);
  expect(gate.enter()).toBe(true);
  gate.leave();
  gate.remove();
});
