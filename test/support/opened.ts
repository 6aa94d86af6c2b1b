// Backends opened as a cache would open them, records to write to them, and the outcome of a call.
import type { Backend, BackendHost, KeyedRecord } from "../../src/core/backend.ts";
import { systemClock } from "../../src/core/clock.ts";
import type { XCacheError } from "../../src/core/errors.ts";
import type { Entry, Stamp } from "../../src/core/record.ts";

const HOST: BackendHost = {
  clock: systemClock,
  operationTimeoutMs: 1_000,
  connectTimeoutMs: 5_000,
  poolSize: 1,
  report: () => {},
  evicted: () => {},
  onServer: async () => {},
};

/** Opens the backend, and disconnects it at the end of the block. */
export function openedBackend<Opened extends Backend>(
  backend: Opened,
  host: Partial<BackendHost> = {},
): Opened & AsyncDisposable {
  backend.open?.({ ...HOST, ...host });
  return Object.assign(backend, { [Symbol.asyncDispose]: async () => backend.disconnect?.() });
}

/** The smallest record there is. */
export const stamp = (): Stamp => ({
  kind: "stamp",
  version: systemClock.token(),
  expires: Number.POSITIVE_INFINITY,
});

export function stampFor(key: string): KeyedRecord {
  return { key, record: stamp(), lifetimeMs: Number.POSITIVE_INFINITY };
}

export function entry(key: string, bytes: Uint8Array = Buffer.from("value")): Entry {
  return {
    kind: "entry",
    version: systemClock.token(),
    key,
    namespaceStamps: [],
    tags: [],
    created: 0,
    expires: Number.POSITIVE_INFINITY,
    staleUntil: Number.POSITIVE_INFINITY,
    payload: { format: 0, bytes },
  };
}

export function item(key: string, bytes?: Uint8Array, lifetimeMs = Number.POSITIVE_INFINITY): KeyedRecord {
  return { key, record: entry(key, bytes), lifetimeMs };
}

/** Whether a record can be written and read back. */
export async function works(backend: Backend, key = "works"): Promise<boolean> {
  const item = stampFor(key);
  await backend.write(item);
  return (await backend.read(key))?.version === item.record.version;
}

/** The error it rejects with; must be called before it can reject. */
export function failure(promise: Promise<unknown>): Promise<XCacheError> {
  return promise.then(
    (value) => new Error(`it succeeded with ${String(value)}`) as XCacheError,
    (error: XCacheError) => error,
  );
}

export interface Timed<T> {
  readonly ms: number;
  readonly outcome: T | XCacheError;
}

/** How long a call takes and its outcome; an error is an outcome too. */
export async function timed<T>(work: Promise<T>): Promise<Timed<T>> {
  const started = performance.now();
  const outcome = await work.catch((error: XCacheError) => error);
  return { ms: performance.now() - started, outcome };
}
