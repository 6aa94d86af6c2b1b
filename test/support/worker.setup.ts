// Around each file of tests: before the first one, loads what the library itself loads on first use; after each, ends the use of
// async contexts.
import { AsyncLocalStorage } from "node:async_hooks";
import { afterAll } from "vitest";

interface Worker {
  /** Those that tests or libraries have run something in. */
  readonly storages: Set<AsyncLocalStorage<unknown>>;
}

declare global {
  var xcacheTestWorker: Worker | undefined;
}

const worker = globalThis.xcacheTestWorker ?? (await begun());

// As long as one of them is in use, Node 20 follows every promise of the process and asks each of them: a tenth of all
// processor time, for tests that use none.
afterAll(() => {
  for (const storage of worker.storages) storage.disable();
  worker.storages.clear();
});

async function begun(): Promise<Worker> {
  const storages: Worker["storages"] = new Set();
  const { run, enterWith } = AsyncLocalStorage.prototype;
  AsyncLocalStorage.prototype.run = function (
    this: AsyncLocalStorage<unknown>,
    ...args: Parameters<typeof run>
  ) {
    storages.add(this);
    return run.apply(this, args);
  } as typeof run;
  AsyncLocalStorage.prototype.enterWith = function (store) {
    storages.add(this);
    enterWith.call(this, store);
  };
  // On a busy machine the test runner takes longer to compile these than the first call of a test may take.
  await import("lmdb");
  await import("../../src/backends/disk/records.ts");
  await import("../../src/backends/kv/client.ts");
  await import("../../src/backends/kv/several-servers.ts");
  await import("../../src/backends/memcached/servers.ts");
  await import("../../src/cache/open-shared.ts");
  await import("../../src/db/sql/settled-statement.ts");
  await import("../../src/metrics/history/fleet-activity.ts");
  globalThis.xcacheTestWorker = { storages };
  return globalThis.xcacheTestWorker;
}
