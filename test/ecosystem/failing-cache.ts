// A cache whose store fails on demand, without a circuit breaker.
import { onTestFinished } from "vitest";
import { MemoryBackend } from "../../src/backends/memory/backend.ts";
import type { BackendHost } from "../../src/core/backend.ts";
import { ConnectionError } from "../../src/core/errors.ts";
import { ChaosBackend } from "../../src/testing/index.ts";
import type { XCache } from "../../src/xcache.ts";
import { memoryCache } from "../behaviour/cache/memory-cache.ts";

class TroubledBackend extends ChaosBackend {
  #host: BackendHost | undefined;

  override open(host: BackendHost): void {
    this.#host = host;
    super.open(host);
  }

  /** Reports an error that belongs to no call. */
  report(error: Error): void {
    this.#host?.report(error);
  }
}

export interface FailingCache {
  readonly cache: XCache;
  /** From now on every operation is refused. */
  fail(): void;
  /** Everything works again, as it does at the end of the test. */
  calm(): void;
  /** The connection breaks while no call is in flight. */
  breakConnection(): void;
}

export function failingCache(): FailingCache {
  const store = new TroubledBackend(new MemoryBackend());
  const { cache } = memoryCache({
    backend: store,
    circuitBreaker: { failureThreshold: 1_000, resetTimeout: 1 },
  });
  onTestFinished(() => void store.calm());
  return {
    cache,
    fail: () => void store.fail("all", new ConnectionError("refused")),
    calm: () => void store.calm(),
    breakConnection: () => store.report(new ConnectionError("lost")),
  };
}
