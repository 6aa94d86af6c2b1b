// Folders that cannot hold a store, foreign stores, a full disk: each is a typed error that states what to do.

import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { prepareFolder } from "../../../src/backends/disk/directory.ts";
import { AREA, inArea } from "../../../src/backends/disk/layout/disk-key.ts";
import { loadLmdb, openStore } from "../../../src/backends/disk/lmdb.ts";
import { Gate } from "../../../src/backends/disk/lock/gate.ts";
import { readBootId } from "../../../src/backends/disk/lock/marker-owner.ts";
import { systemClock } from "../../../src/core/clock.ts";
import { ConnectionError } from "../../../src/core/errors.ts";
import { DiskProcess } from "../../support/disk/disk-process.ts";
import { freshFolders } from "../../support/disk/folder.ts";
import { opened } from "../../support/disk/opened.ts";
import { item } from "../../support/opened.ts";
import { modulesWithoutPackages } from "../../support/own-process.ts";

const freshFolder = freshFolders();

async function expectRefusal(
  directory: string,
  problem: string | RegExp,
  options: object = {},
): Promise<void> {
  const backend = opened({ directory, ...options });
  const refusal = await backend.connect().then(
    () => undefined,
    (error: unknown) => error,
  );
  expect(refusal).toBeInstanceOf(ConnectionError);
  const { message, hint } = refusal as ConnectionError;
  expect(message).toMatch(problem);
  expect(message).toContain(directory);
  expect(hint.length).toBeGreaterThan(10);
  // It fails the same way again, and leaves nothing behind.
  await expect(backend.read("key")).rejects.toMatchObject({ message });
  await backend.disconnect();
}

describe("a folder is rejected", () => {
  test("that is a file, or lies below one", async () => {
    const directory = freshFolder();
    writeFileSync(directory, "text");
    await expectRefusal(directory, "it is a file");
    await expectRefusal(join(directory, "below"), "a part of the path is a file");
    expect(readFileSync(directory, "utf8")).toBe("text");
  });

  test("that this process cannot write to", async () => {
    const directory = freshFolder();
    mkdirSync(directory);
    chmodSync(directory, 0o500);
    // Permissions do not bind root: another user tries.
    const asOther = process.getuid?.() === 0 ? { uid: 65_534 } : {};
    const script = `
      import { prepareFolder } from "./backends/disk/directory.js";
      if (settings.uid !== undefined) process.setuid(settings.uid);
      try {
        prepareFolder(settings.directory, "process");
        say("prepared");
      } catch (error) {
        say("refused", { name: error.name, message: error.message, hint: error.hint });
      }
    `;
    await using own = new DiskProcess(script, { directory, ...asOther });
    const refusal = await own.heard("refused");
    expect(refusal).toMatchObject({ name: "ConnectionError", hint: expect.stringContaining("folder") });
    expect(refusal.message).toContain("may not write to it");
  });

  test("that holds an LMDB environment of another application", async () => {
    const directory = freshFolder();
    mkdirSync(directory);
    writeFileSync(join(directory, "data.mdb"), "");
    await expectRefusal(directory, "data.mdb in it is an LMDB environment of another application");
    expect(readdirSync(directory)).toEqual(["data.mdb"]);
  });

  test("whose store contains foreign data", async () => {
    const directory = freshFolder();
    const { path } = prepareFolder(directory, "process");
    const store = openStore(await loadLmdb(), { path, isSynced: false, mapBytes: 2 ** 20 });
    await store.put("foreign", Buffer.from("value"), 1);
    await store.close();
    await expectRefusal(directory, "was not written by xcache");
  });

  test("with a store of another major version of the format", async () => {
    const directory = freshFolder();
    const { path } = prepareFolder(directory, "process");
    const store = openStore(await loadLmdb(), { path, isSynced: false, mapBytes: 2 ** 20 });
    const about = inArea(AREA.about, Buffer.from("format"));
    await store.put(about, Buffer.from(JSON.stringify({ format: 1 })), 0);
    await store.close();
    await expectRefusal(directory, /its format is version 1; this version of xcache reads version 2/);
  });

  test("with a store of another durability, in either direction", async () => {
    for (const [first, second] of [
      ["process", "disk"],
      ["disk", "process"],
    ] as const) {
      const directory = freshFolder();
      const backend = opened({ directory, durability: first });
      await backend.connect();
      await expectRefusal(directory, `it holds a store with durability "${first}"`, { durability: second });
      await backend.disconnect();
    }
  });

  test("that is damaged", async () => {
    const directory = freshFolder();
    const { path } = prepareFolder(directory, "process");
    writeFileSync(join(path, "data.mdb"), Buffer.alloc(8_192, 7));
    await expectRefusal(directory, /cannot hold a store/);
  });
});

test("a store whose commits are not flushed is left alone by the next boot, which starts another", async () => {
  const directory = freshFolder();
  const before = prepareFolder(directory, "process", "former-boot");
  // A process was in a commit when the power failed.
  expect(new Gate(before.path, systemClock).enter()).toBe(true);
  const now = prepareFolder(directory, "process", "this-boot");
  expect(now.path).not.toBe(before.path);
  expect(readdirSync(directory)).toEqual(["boot-this-boot"]);
  expect(now.isSynced).toBe(false);
});

test("anything that is not a store of a former boot is left alone, whatever its name", async () => {
  const directory = freshFolder();
  mkdirSync(join(directory, "boot-photos"), { recursive: true });
  writeFileSync(join(directory, "boot-photos", "data.mdb"), "");
  writeFileSync(join(directory, "boot-photos", "one.jpg"), "photo");
  writeFileSync(join(directory, "boot-loader"), "text");
  mkdirSync(join(directory, "boot-party", "opening"), { recursive: true });
  writeFileSync(join(directory, "boot-party", "opening", "two.jpg"), "photo");
  prepareFolder(directory, "process", "this-boot");
  const names = ["boot-loader", "boot-party", "boot-photos", "boot-this-boot"];
  expect(readdirSync(directory).sort()).toEqual(names);
  expect(readdirSync(join(directory, "boot-photos"))).toEqual(["data.mdb", "one.jpg"]);
  expect(readdirSync(join(directory, "boot-party", "opening"))).toEqual(["two.jpg"]);
});

test("every commit is flushed if the system does not distinguish its boots", () => {
  expect(prepareFolder(freshFolder(), "process", undefined).isSynced).toBe(readBootId() === undefined);
  const folder = freshFolder();
  mkdirSync(folder);
  expect(prepareFolder(folder, "disk", "a-boot")).toMatchObject({ isSynced: true });
});

test("a full disk fails the change with a typed error, stored data stays, and there is room again later", async () => {
  const directory = freshFolder();
  // To the store, a limit on file sizes looks like a full disk, and it needs no permissions.
  const limiter = "prlimit";
  expect(spawnSync(limiter, ["--version"]).status, `${limiter} is part of util-linux`).toBe(0);
  await using own = new DiskProcess(
    `
    import { execFileSync } from "node:child_process";
    process.on("SIGXFSZ", () => {});
    const limit = (bytes) => execFileSync("${limiter}", ["--pid", String(process.pid), "--fsize=" + bytes + ":unlimited"]);
    const backend = openBackend({ operationTimeoutMs: 5_000 });
    const write = (key) => backend.write({ key, record: entry(key, Buffer.alloc(20_000, 7)), lifetimeMs: Infinity });
    limit(1_000_000);
    let written = 0;
    let refusal;
    while (refusal === undefined) {
      await write("key" + written).then(() => written++, (error) => { refusal = error; });
    }
    say("refused", { written, name: refusal.name, code: refusal.code, message: refusal.message, hint: refusal.hint });
    let present = 0;
    for (let at = 0; at < written; at++) if ((await backend.read("key" + at)) !== undefined) present++;
    const half = await backend.read("key" + written);
    const isReadOnly = backend.answersInPart();
    const taken = (await backend.take("key0")) !== undefined;
    limit("unlimited");
    for (let at = 0; at < 20; at++) await write("again" + at);
    say("recovered", { present, half, taken, isReadOnly, isReadOnlyStill: backend.answersInPart() });
    await backend.disconnect();
  `,
    { directory },
  );
  const refused = await own.heard("refused");
  expect(refused.written).toBeGreaterThan(10);
  expect(refused).toMatchObject({ name: "ConnectionError", code: "CONNECTION_FAILED" });
  expect(refused.message).toContain("cannot write to");
  expect(refused.hint).toContain("intact");
  const recovered = await own.heard("recovered");
  // Even on a full disk entries can be removed: an invalidation succeeds.
  expect(recovered).toMatchObject({
    present: refused.written,
    taken: true,
    isReadOnly: true,
    isReadOnlyStill: false,
  });
  expect(recovered.half).toBeUndefined();
  expect(await own.ended()).toEqual({ code: 0, signal: null });
  const backend = opened({ directory });
  expect(await backend.read("again19")).toBeDefined();
  expect(await backend.read(`key${refused.written}`)).toBeUndefined();
  await backend.write(item("more"));
  await backend.disconnect();
});

test("without the package lmdb the error names it and how to install it", async () => {
  const folder = modulesWithoutPackages();
  const script = `
    import { DiskBackend } from "./backends/disk/backend.js";
    const backend = new DiskBackend({ directory: ${JSON.stringify(freshFolder())} });
    await backend.connect().catch((error) => console.log(JSON.stringify({ name: error.name, ...error })));
  `;
  writeFileSync(join(folder, "alone.js"), script);
  const { stdout, stderr } = spawnSync(process.execPath, ["alone.js"], { cwd: folder, encoding: "utf8" });
  expect(stderr).toBe("");
  expect(JSON.parse(stdout)).toMatchObject({
    name: "MissingPeerError",
    packageName: "lmdb",
    // A bundle has no package.json of ours.
    installCommand: 'npm install "lmdb@>=3.0.0"',
  });
});
