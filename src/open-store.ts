// From configuration to an opened store. Caches on one backend object share one store.
import { MemoryBackend } from "./backends/memory/backend.ts";
import { createCodec } from "./codec/codec.ts";
import type { ResolvedConfig } from "./config/types.ts";
import { parseStoreAddress } from "./config/url.ts";
import type { Backend } from "./core/backend.ts";
import type { Clock } from "./core/clock.ts";
import { UnsupportedError } from "./core/errors.ts";
import { SharedStore } from "./core/shared-store.ts";
import type { Store } from "./core/space.ts";

const stores = new WeakMap<Backend, Store>();

export function openStore(config: ResolvedConfig, clock: Clock): Store {
  const backend = config.backend ?? openBackend(config.kvUrl);
  let store = stores.get(backend);
  if (store === undefined) {
    store = makeStore(backend, config, clock);
    stores.set(backend, store);
  }
  return store;
}

function makeStore(backend: Backend, config: ResolvedConfig, clock: Clock): Store {
  const codec = createCodec({ serialization: config.serialization, compression: config.compression });
  if (backend instanceof MemoryBackend) return backend.store(clock, codec);
  return new SharedStore(backend, {
    clock,
    codec,
    breaker: config.circuitBreaker,
    operationTimeoutMs: config.operationTimeout * 1000,
    connectTimeoutMs: config.connectTimeout * 1000,
    poolSize: config.poolSize,
  });
}

function openBackend(kvUrl: string): Backend {
  const address = parseStoreAddress(kvUrl);
  if (address.kind === "memory") return new MemoryBackend(address.options);
  throw new UnsupportedError(`stores of kind ${address.kind} are not part of this version`, {
    hint: "Use memory:// or pass a backend object.",
  });
}
