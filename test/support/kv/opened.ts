// Backends opened as a cache would open them, for tests that look at the wire below.
// The client is there with the test: to compile it within the deadline of a first call would take too long on a busy machine.
import "../../../src/backends/kv/client.ts";
import { KvBackend } from "../../../src/backends/kv/backend.ts";
import type { BackendHost, KeyedRecord } from "../../../src/core/backend.ts";
import { systemClock } from "../../../src/core/clock.ts";
import type { XCacheError } from "../../../src/core/errors.ts";

const HOST: BackendHost = {
  clock: systemClock,
  operationTimeoutMs: 1_000,
  connectTimeoutMs: 5_000,
  poolSize: 1,
  report: () => {},
  evicted: () => {},
  onServer: async () => {},
};

/** Disconnects at the end of the block. */
export type OpenedBackend = KvBackend & AsyncDisposable;

export function opened(kvUrl: string, host: Partial<BackendHost> = {}): OpenedBackend {
  const backend = new KvBackend({ kvUrl });
  backend.open({ ...HOST, ...host });
  return Object.assign(backend, { [Symbol.asyncDispose]: () => backend.disconnect() });
}

/** A stamp is the smallest record there is. */
export function stampFor(key: string): KeyedRecord {
  return {
    key,
    record: { kind: "stamp", version: systemClock.token(), expires: Number.POSITIVE_INFINITY },
    lifetimeMs: Number.POSITIVE_INFINITY,
  };
}

/** Whether a record can be written and read back. */
export async function works(backend: KvBackend, key = "works"): Promise<boolean> {
  const item = stampFor(key);
  await backend.write(item);
  return (await backend.read(key))?.version === item.record.version;
}

/** What it fails with; to be called before it can. */
export function failure(promise: Promise<unknown>): Promise<XCacheError> {
  return promise.then(
    (value) => new Error(`it succeeded with ${String(value)}`) as XCacheError,
    (error: XCacheError) => error,
  );
}
