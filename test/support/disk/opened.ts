// Disk backends opened as a cache would open them.
import { DiskBackend } from "../../../src/backends/disk/backend.ts";
import type { DiskFolderOptions } from "../../../src/backends/disk/options.ts";
import type { BackendHost } from "../../../src/core/backend.ts";
import { openedBackend } from "../opened.ts";

/** A disk may be slow: what a test does not limit itself may take ten seconds. */
const PATIENT = { operationTimeoutMs: 10_000, connectTimeoutMs: 10_000 };

export function opened(options: DiskFolderOptions, host: Partial<BackendHost> = {}): DiskBackend {
  return openedBackend(new DiskBackend(options), { ...PATIENT, ...host });
}
