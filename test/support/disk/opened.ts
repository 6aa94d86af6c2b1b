// Backends as a cache would open them, and records to put into them.
import { DiskBackend } from "../../../src/backends/disk/backend.ts";
import type { DiskFolderOptions } from "../../../src/backends/disk/options.ts";
import type { BackendHost, KeyedRecord } from "../../../src/core/backend.ts";
import { systemClock } from "../../../src/core/clock.ts";
import type { Entry, Stamp } from "../../../src/core/record.ts";

export function opened(options: DiskFolderOptions, host: Partial<BackendHost> = {}): DiskBackend {
  const backend = new DiskBackend(options);
  backend.open({
    clock: systemClock,
    operationTimeoutMs: 10_000,
    connectTimeoutMs: 10_000,
    poolSize: 1,
    report: () => {},
    evicted: () => {},
    onServer: async () => {},
    ...host,
  });
  return backend;
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

export const stamp = (): Stamp => ({
  kind: "stamp",
  version: systemClock.token(),
  expires: Number.POSITIVE_INFINITY,
});
