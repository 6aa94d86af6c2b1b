// Several real processes on one store: they see each other's changes immediately, one of them loads, and each exits by itself.

import { Worker } from "node:worker_threads";
import { expect, test } from "vitest";
import { DiskBackend } from "../../../src/backends/disk/backend.ts";
import { settle } from "../../../src/testing/index.ts";
import { XCache } from "../../../src/xcache.ts";
import { DiskProcess } from "../../support/disk/disk-process.ts";
import { freshFolders } from "../../support/disk/folder.ts";
import { programFile } from "../../support/own-process.ts";
import { soon } from "../../support/pace.ts";

const freshFolder = freshFolders();

/** A process exits within moments, even on a busy machine; a timer or handle of ours would keep it alive longer. */
const MOMENTS_MS = 1_500;

test("what another process invalidates, deletes or writes is seen by the very next read", async () => {
  const directory = freshFolder();
  await using other = new DiskProcess(
    `
    const cache = await openCache({ keyPrefix: "shared" });
    await cache.connect();
    say("ready");
    for (;;) {
      const { way, value } = await nextMessage();
      if (way === "tags") await cache.invalidateTags("tag");
      else if (way === "clear") await cache.clear();
      else if (way === "delete") await cache.delete("key");
      else if (way === "set") await cache.set("key", value, { tags: ["tag"] });
      say("done");
    }
  `,
    { directory },
  );
  const cache = new XCache({ backend: new DiskBackend({ directory }), keyPrefix: "shared" });
  try {
    await other.heard("ready");
    for (const way of ["tags", "clear", "delete", "set"]) {
      await cache.set("key", "old", { tags: ["tag"] });
      expect(await cache.get("key")).toBe("old");
      // Reads go on all the time, so that a snapshot would be available for reuse.
      let isDone = false;
      const reading = (async () => {
        for (; !isDone; await settle()) for (let at = 0; at < 50; at++) await cache.get("key");
      })();
      other.tell({ way, value: "new" });
      await other.heard("done");
      const seen = await cache.get("key");
      isDone = true;
      await reading;
      expect(seen, way).toBe(way === "set" ? "new" : undefined);
    }
  } finally {
    await cache.disconnect();
  }
});

test("two processes that overwrite the same records without pause both go on", async () => {
  const directory = freshFolder();
  const writes = `
    const cache = await openCache({ keyPrefix: "shared", operationTimeout: 60 });
    await cache.connect();
    const value = { text: "x".repeat(200) };
    let left = 80_000;
    let failure;
    await Promise.all(Array.from({ length: 64 }, async (_, caller) => {
      for (let key = caller * 997; failure === undefined && left-- > 0; key = (key * 31 + 7 + caller) % 10_000)
        await cache.set("key-" + key, value).catch((error) => (failure = String(error)));
    }));
    say(failure ?? "written");
    await cache.disconnect();
  `;
  await using one = new DiskProcess(writes, { directory });
  await using other = new DiskProcess(writes, { directory });
  await Promise.all([one.heard("written"), other.heard("written")]);
});

test("a snapshot is not reused: a loop that never lets the event loop turn sees another process's write", async () => {
  const directory = freshFolder();
  const backend = new DiskBackend({ directory });
  await backend.connect();
  await using other = new DiskProcess(
    `
    const backend = openBackend();
    await backend.connect();
    say("ready");
    await nextMessage();
    await backend.write({ key: "key", record: entry("key"), lifetimeMs: Infinity });
    say("written");
    await backend.disconnect();
  `,
    { directory },
  );
  await other.heard("ready");
  other.tell();
  const began = performance.now();
  let found = false;
  // Only microtasks from here on.
  while (!found && performance.now() - began < 5_000) found = (await backend.read("key")) !== undefined;
  expect(found).toBe(true);
  await backend.disconnect();
});

test("a stampede of four processes with 250 callers each runs one load", async () => {
  const directory = freshFolder();
  const members = Array.from(
    { length: 4 },
    () =>
      new DiskProcess(
        `
      const cache = await openCache({ keyPrefix: "stampede" });
      await cache.connect();
      say("ready");
      await nextMessage();
      let loads = 0;
      const finish = nextMessage();
      const load = () => { loads++; say("loading"); return finish.then(() => ({ by: process.pid })); };
      const answers = Promise.all(Array.from({ length: 250 }, () => cache.getOrSet("cold", load)));
      say("asked");
      const values = await answers;
      say("answered", { loads, values, at: Date.now() });
      await cache.disconnect();
    `,
        { directory },
      ),
  );
  try {
    await Promise.all(members.map((member) => member.heard("ready")));
    for (const member of members) member.tell();
    await Promise.all(members.map((member) => member.heard("asked")));
    await Promise.race(members.map((member) => member.heard("loading")));
    const finishedAt = Date.now();
    for (const member of members) member.tell();
    const answers = await Promise.all(members.map((member) => member.heard("answered")));
    expect(answers.reduce((sum, { loads }) => sum + (loads as number), 0)).toBe(1);
    const values = answers.flatMap((answer) => answer.values as { by: number }[]);
    expect(values).toHaveLength(1_000);
    expect(new Set(values.map(({ by }) => by)).size).toBe(1);
    // The store notifies nobody: waiters poll at least four times a second.
    const longest = Math.max(...answers.map(({ at }) => at as number)) - finishedAt;
    expect(longest).toBeLessThan(soon(1_500));
    for (const member of members) expect(await member.ended()).toMatchObject({ code: 0 });
  } finally {
    await Promise.all(members.map((member) => member[Symbol.asyncDispose]()));
  }
});

test("concurrent swaps by four processes lose no update", async () => {
  const directory = freshFolder();
  const members = Array.from(
    { length: 4 },
    () =>
      new DiskProcess(
        `
      const backend = openBackend({ operationTimeoutMs: 20_000 });
      await backend.connect();
      say("ready");
      await nextMessage();
      let won = 0;
      while (won < 50) {
        const present = await backend.read("counter");
        const count = present === undefined ? 0 : Number(Buffer.from(present.payload.bytes).toString());
        const record = entry("counter", Buffer.from(String(count + 1)));
        const result = await backend.swap("counter", present?.version, { record, lifetimeMs: Infinity });
        if (result.won) won++;
      }
      await backend.disconnect();
      say("done");
    `,
        { directory },
      ),
  );
  try {
    await Promise.all(members.map((member) => member.heard("ready")));
    for (const member of members) member.tell();
    await Promise.all(members.map((member) => member.heard("done")));
    const backend = new DiskBackend({ directory });
    const counter = await backend.read("counter");
    expect(counter?.kind === "entry" && Buffer.from(counter.payload.bytes).toString()).toBe("200");
    await backend.disconnect();
  } finally {
    await Promise.all(members.map((member) => member[Symbol.asyncDispose]()));
  }
});

test("a process exits by itself after a disconnect, without one, and with an unawaited write", async () => {
  const directory = freshFolder();
  for (const ending of ["await backend.disconnect();", "", "backend.write(item('late'));"]) {
    await using own = new DiskProcess(
      `
      const item = (key) => ({ key, record: entry(key), lifetimeMs: 60_000 });
      const backend = openBackend();
      await backend.connect();
      await backend.write(item("first"));
      await backend.read("first");
      ${ending}
      say("over");
    `,
      { directory },
    );
    await own.heard("over");
    const overAt = performance.now();
    expect(await own.ended()).toEqual({ code: 0, signal: null });
    expect(performance.now() - overAt).toBeLessThan(soon(MOMENTS_MS));
    expect(own.errors).toBe("");
  }
  const backend = new DiskBackend({ directory });
  expect(await backend.read("late")).toBeDefined();
  await backend.disconnect();
});

test("threads of one process share a store, and one that ends leaves it to the others", async () => {
  const directory = freshFolder();
  const file = programFile(`
    import { parentPort, workerData } from "node:worker_threads";
    import { DiskBackend } from "./backends/disk/backend.js";
    import { XCache } from "./xcache.js";
    const cache = new XCache({ backend: new DiskBackend({ directory: workerData.directory }), keyPrefix: "threads" });
    await cache.set("of thread " + workerData.name, workerData.name, { tags: ["tag"] });
    parentPort.postMessage("written");
    await new Promise((resolve) => parentPort.once("message", resolve));
    parentPort.postMessage({ seen: await cache.get("of main"), other: await cache.get("of thread a") });
    if (workerData.disconnects) await cache.disconnect();
    parentPort.close();
  `);
  const cache = new XCache({ backend: new DiskBackend({ directory }), keyPrefix: "threads" });
  const next = (worker: Worker) => new Promise<unknown>((resolve) => worker.once("message", resolve));
  try {
    await cache.set("of main", "main");
    for (const [name, disconnects] of [
      ["a", true],
      ["b", false],
    ] as const) {
      const worker = new Worker(file, { workerData: { directory, name, disconnects } });
      const ended = new Promise((resolve) => worker.once("exit", resolve));
      expect(await next(worker)).toBe("written");
      expect(await cache.get(`of thread ${name}`)).toBe(name);
      const answer = next(worker);
      worker.postMessage("go on");
      expect(await answer).toEqual({ seen: "main", other: "a" });
      expect(await ended).toBe(0);
      // What it had open was not closed under this thread.
      await cache.set("of main", "main");
      expect(await cache.get(`of thread ${name}`)).toBe(name);
    }
    await cache.invalidateTags("tag");
    expect(await cache.get("of thread a")).toBeUndefined();
  } finally {
    await cache.disconnect();
  }
});
