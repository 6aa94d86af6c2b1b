// A folder that is removed or replaced under the processes that have its store open.
import { renameSync, rmSync } from "node:fs";
import { expect, test } from "vitest";
import { type Clock, systemClock } from "../../../src/core/clock.ts";
import { ConnectionError } from "../../../src/core/errors.ts";
import { cacheWithClock } from "../../../src/testing/index.ts";
import { freshFolders } from "../../support/disk/folder.ts";
import { opened } from "../../support/disk/opened.ts";
import { item } from "../../support/opened.ts";

const freshFolder = freshFolders();
/** Stands still, so that only a change checks the folder, however long the test takes. */
const standing: Clock = { ...systemClock, coarse: () => 0 };

test("a change to a store whose folder was removed is rejected, and the next one goes into a new store", async () => {
  const directory = freshFolder();
  const backend = opened({ directory }, { clock: standing });
  await backend.write(item("before"));
  rmSync(directory, { recursive: true });
  const refusal = await backend.write(item("lost")).catch((error: unknown) => error);
  expect(refusal).toBeInstanceOf(ConnectionError);
  expect((refusal as ConnectionError).message).toContain("removed or replaced");
  await backend.write(item("after"));
  expect(await backend.readMany(["before", "lost", "after"])).toEqual([
    undefined,
    undefined,
    expect.objectContaining({ key: "after" }),
  ]);
  await backend.disconnect();
});

test("when another store replaces it, nobody serves the former one once the new one is used", async () => {
  const directory = freshFolder();
  const [first, second] = [opened({ directory }), opened({ directory })];
  await first.write(item("former"));
  await second.connect();
  renameSync(directory, `${directory}-aside`);
  const third = opened({ directory });
  await third.write(item("present"));
  for (const backend of [first, second, third]) {
    expect(await backend.read("former")).toBeUndefined();
    expect(await backend.read("present")).toBeDefined();
  }
  await Promise.all([first, second, third].map((backend) => backend.disconnect()));
});

test("a process that only reads notices it half a second later", async () => {
  const directory = freshFolder();
  let aheadMs = 0;
  const clock: Clock = { ...systemClock, coarse: () => systemClock.now() + aheadMs };
  const backend = opened({ directory }, { clock });
  await backend.write(item("key"));
  expect(backend.versionNow("key")).toBeDefined();
  rmSync(directory, { recursive: true });
  aheadMs = 500;
  expect(backend.versionNow("key")).toBeUndefined();
  expect(await backend.read("key")).toBeUndefined();
  await backend.disconnect();
});

test("a cache continues in the store that replaced a removed one", async () => {
  const directory = freshFolder();
  await using cache = cacheWithClock({ kvUrl: `file://${directory}`, keyPrefix: "kept" }, standing);
  await cache.set("key", "value", { tags: ["tag"] });
  rmSync(directory, { recursive: true });
  await expect(cache.invalidateTags("tag")).rejects.toBeInstanceOf(ConnectionError);
  await cache.set("key", "next", { tags: ["tag"] });
  expect(await cache.get("key")).toBe("next");
  await cache.invalidateTags("tag");
  expect(await cache.get("key")).toBeUndefined();
});
