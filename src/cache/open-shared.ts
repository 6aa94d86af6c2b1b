// Opens a store that processes share: loaded when the first cache is opened on one.
import { MemoryNearTier } from "../backends/memory/near-tier.ts";
import { createCodec } from "../codec/codec.ts";
import { Encryption } from "../codec/encryption.ts";
import type { Keys } from "../codec/encryption-keys.ts";
import type { ResolvedConfig } from "../config/types.ts";
import type { Backend } from "../core/backend.ts";
import type { Clock } from "../core/clock.ts";
import type { StoreFace } from "../core/shared/observers.ts";
import { SealedBackend } from "../core/shared/sealed-backend.ts";
import { SharedStore } from "../core/shared/shared-store.ts";

export interface SharedStoreParts {
  readonly config: ResolvedConfig;
  readonly clock: Clock;
  /** Of the encryption; undefined where there is none, or a function hands them out. */
  readonly keys: Keys | undefined;
}

export function openShared(
  backend: Backend,
  { config, clock, keys }: SharedStoreParts,
  face?: StoreFace,
): SharedStore {
  const { serialization, compression } = config;
  const slices = backend.capabilities.takesPayloadSlices === true;
  const options = {
    clock,
    codec: createCodec({ serialization, compression, slices }),
    breaker: config.circuitBreaker,
    operationTimeoutMs: config.operationTimeout * 1000,
    connectTimeoutMs: config.connectTimeout * 1000,
    poolSize: config.poolSize,
    ...(config.nearCache === false ? {} : { near: new MemoryNearTier(config.nearCache, clock) }),
  };
  const encryption = config.encryption && new Encryption(config.encryption.config, keys);
  return new SharedStore(encryption ? new SealedBackend(backend, encryption) : backend, options, face);
}
