// A shared store for tests of the core, over whichever backend.
import { createCodec } from "../../src/codec/codec.ts";
import type { Backend } from "../../src/core/backend.ts";
import type { Clock } from "../../src/core/clock.ts";
import { SharedStore } from "../../src/core/shared/shared-store.ts";

/** `failureThreshold`: the number of failures that open its circuit. */
export function openSharedStore(backend: Backend, clock: Clock, failureThreshold = 5): SharedStore {
  return new SharedStore(backend, {
    clock,
    codec: createCodec({ serialization: "msgpack", compression: false }),
    breaker: { failureThreshold, resetTimeout: 1 },
    operationTimeoutMs: 1_000,
    connectTimeoutMs: 1_000,
    poolSize: 1,
  });
}
