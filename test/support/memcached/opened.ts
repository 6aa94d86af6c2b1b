// Backends opened as a cache would open them, for tests that look at the wire below.
import { MemcachedBackend } from "../../../src/backends/memcached/backend.ts";
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
export type OpenedBackend = MemcachedBackend & AsyncDisposable;

export function opened(kvUrl: string, host: Partial<BackendHost> = {}): OpenedBackend {
  const backend = new MemcachedBackend({ kvUrl });
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

/** An entry with so many bytes. */
export function entryFor(key: string, bytes = 10, lifetimeMs = Number.POSITIVE_INFINITY): KeyedRecord {
  const expires = Number.POSITIVE_INFINITY;
  const payload = { format: 0, bytes: new Uint8Array(bytes) };
  const version = systemClock.token();
  const record = { version, key, namespaceStamps: [], tags: [], created: 0, expires, staleUntil: expires, payload };
  return { key, record: { kind: "entry", ...record }, lifetimeMs };
}

/** Whether a record can be written and read back. */
export async function works(backend: MemcachedBackend, key = "works"): Promise<boolean> {
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

export async function timed<T>(
  work: Promise<T>,
): Promise<{ readonly ms: number; readonly outcome: T | XCacheError }> {
  const started = performance.now();
  const outcome = await work.catch((error: XCacheError) => error);
  return { ms: performance.now() - started, outcome };
}
