// Kv backends opened as a cache would open them, for tests that look at the wire below.
// The client is loaded with the test: compiling it within the deadline of a first call would take too long on a busy machine.
import "../../../src/backends/kv/client.ts";
import { KvBackend } from "../../../src/backends/kv/backend.ts";
import type { BackendHost } from "../../../src/core/backend.ts";
import { openedBackend } from "../opened.ts";

export type OpenedBackend = KvBackend & AsyncDisposable;

export function opened(kvUrl: string, host?: Partial<BackendHost>): OpenedBackend {
  return openedBackend(new KvBackend({ kvUrl }), host);
}
