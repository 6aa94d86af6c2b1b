// Threads and processes that open and close a store while others write to it: no acknowledged write is lost, and nobody
// finds it broken. LMDB alone reverts its latest commit when it is opened, and its locks when it is closed.
import { expect, test } from "vitest";
import { DiskProcess } from "../../support/disk/disk-process.ts";
import { freshFolders } from "../../support/disk/folder.ts";
import { opened } from "../../support/disk/opened.ts";
import { item } from "../../support/opened.ts";
import { programFile } from "../../support/own-process.ts";

const freshFolder = freshFolders();

/** Writes without a pause until it receives a message, and compares each time the stored value with its last write. */
const WRITER = `
  const backend = openBackend({ operationTimeoutMs: 10_000 });
  await backend.connect();
  let isOver = false;
  nextMessage().then(() => { isOver = true; });
  let lost = 0;
  let commits = 0;
  for (let last; !isOver; commits++) {
    if (last !== undefined && backend.versionNow("key") !== last) lost++;
    const record = entry("key", Buffer.alloc(3_000));
    await backend.write({ key: "key", record, lifetimeMs: 3_600_000 });
    last = record.version;
    if (commits === 20) say("writing");
  }
  say("over", { commits, lost });
  await backend.disconnect();
`;

/** Opens and closes the store `settings.times` times. */
const OPENER = `
  for (let left = settings.times; left > 0; left--) {
    const backend = openBackend({ connectTimeoutMs: 5_000 });
    await backend.connect();
    await backend.disconnect();
  }
  say("opened");
`;

/** Like `OPENER`, in two threads of a process. */
const THREADS = `
  import { Worker } from "node:worker_threads";
  const open = () => new Promise((resolve, reject) => {
    new Worker(settings.file, { workerData: settings }).once("exit", resolve).once("error", reject);
  });
  await Promise.all([open(), open()]);
  say("opened");
`;

const threadFile = (): string =>
  programFile(`
    import { workerData } from "node:worker_threads";
    import { DiskBackend } from "./backends/disk/backend.js";
    for (let left = workerData.times; left > 0; left--) {
      const backend = new DiskBackend({ directory: workerData.directory });
      await backend.connect();
      await backend.disconnect();
    }
  `);

test.each([
  ["a process", OPENER, 150],
  ["each of two threads", THREADS, 75],
] as const)(
  "no acknowledged write is lost while %s opens the store and closes it",
  async (_, script, times) => {
    const directory = freshFolder();
    await using writer = new DiskProcess(WRITER, { directory });
    await writer.heard("writing");
    await using opener = new DiskProcess(script, { directory, times, file: threadFile() });
    // It must also get its turn while others commit all the time.
    await opener.heard("opened");
    writer.tell();
    const { commits, lost } = await writer.heard("over");
    expect(lost).toBe(0);
    expect(commits).toBeGreaterThan(100);
    expect(await writer.ended(), writer.errors).toEqual({ code: 0, signal: null });
  },
);

test("a store that is opened by one process while the last other one closes it is not broken", async () => {
  const directory = freshFolder();
  const first = opened({ directory });
  await first.write(item("before"));
  await first.disconnect();
  const settings = { directory, times: 150 };
  await using one = new DiskProcess(OPENER, settings);
  await using other = new DiskProcess(OPENER, settings);
  for (const each of [one, other]) {
    await each.heard("opened");
    expect(await each.ended(), each.errors).toEqual({ code: 0, signal: null });
  }
  const backend = opened({ directory });
  expect(await backend.read("before")).toBeDefined();
  await backend.write(item("after"));
  expect(await backend.read("after")).toBeDefined();
  await backend.disconnect();
});

test("several processes can open a store at the same time", async () => {
  const directory = freshFolder();
  const members = Array.from({ length: 4 }, () => new DiskProcess(OPENER, { directory, times: 5 }));
  try {
    for (const member of members) {
      await member.heard("opened");
      expect(await member.ended(), member.errors).toEqual({ code: 0, signal: null });
    }
  } finally {
    await Promise.all(members.map((member) => member[Symbol.asyncDispose]()));
  }
  // The same within one thread.
  const backends = Array.from({ length: 4 }, () => opened({ directory }));
  await Promise.all(backends.map((backend) => backend.connect()));
  for (const [at, backend] of backends.entries()) {
    await backend.write(item(`of ${at}`));
    for (const each of backends) expect(await each.read(`of ${at}`)).toBeDefined();
  }
  await Promise.all(backends.map((backend) => backend.disconnect()));
});
