// When a committer is idle: only then may the store be closed.
import { mkdirSync } from "node:fs";
import { expect, test } from "vitest";
import { Committer } from "../../../src/backends/disk/committer.ts";
import { Environment } from "../../../src/backends/disk/environment.ts";
import type { DiskEviction } from "../../../src/backends/disk/eviction.ts";
import { loadLmdb } from "../../../src/backends/disk/lmdb.ts";
import { Gate } from "../../../src/backends/disk/lock/gate.ts";
import { WriteOperation } from "../../../src/backends/disk/operation.ts";
import { systemClock } from "../../../src/core/clock.ts";
import { BackendError } from "../../../src/core/errors.ts";
import { freshFolders } from "../../support/disk/folder.ts";
import { item } from "../../support/opened.ts";

const freshFolder = freshFolders();

async function environmentIn(path: string): Promise<Environment> {
  mkdirSync(path);
  return new Environment(await loadLmdb(), { path, isSynced: false, mapBytes: 2 ** 28 });
}

const gateOf = ({ path }: Environment): Gate => new Gate(path, systemClock);

function written(committer: Committer): Promise<void> {
  return new Promise((resolve, reject) =>
    committer.add(new WriteOperation(item("key"), resolve, reject), 10_000),
  );
}

test("a committer that still has to make room is not idle", async () => {
  const environment = await environmentIn(freshFolder());
  let owed = 2;
  const room = {
    maxBatchBytes: 2 ** 20,
    get hasBacklog() {
      return owed > 0;
    },
    plan: () => {
      owed--;
      return [];
    },
  } as unknown as DiskEviction;
  const committer = new Committer(environment, gateOf(environment), systemClock, room, 10_000);
  await written(committer);
  expect(owed).toBe(1);
  expect(committer.isIdle).toBe(false);
  await committer.whenIdle();
  expect(owed).toBe(0);
  expect(committer.isIdle).toBe(true);
  await environment.close();
});

test("waiters are rejected when the store cannot be read", async () => {
  const environment = await environmentIn(freshFolder());
  const room = { maxBatchBytes: 2 ** 20, hasBacklog: false, plan: () => [] } as unknown as DiskEviction;
  const committer = new Committer(environment, gateOf(environment), systemClock, room, 10_000);
  await environment.close();
  await expect(written(committer)).rejects.toBeInstanceOf(BackendError);
  expect(committer.isIdle).toBe(true);
});
