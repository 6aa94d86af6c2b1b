// Memcached backends opened as a cache would open them, for tests that look at the wire below.
import { MemcachedBackend } from "../../../src/backends/memcached/backend.ts";
import type { BackendHost } from "../../../src/core/backend.ts";
import { openedBackend } from "../opened.ts";

export type OpenedBackend = MemcachedBackend & AsyncDisposable;

export function opened(kvUrl: string, host?: Partial<BackendHost>): OpenedBackend {
  return openedBackend(new MemcachedBackend({ kvUrl }), host);
}
