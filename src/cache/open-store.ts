// Opens the store of a configuration. Caches on one backend object share one store.
import { DiskBackend } from "../backends/disk/backend.ts";
import { KvBackend } from "../backends/kv/backend.ts";
import { MemcachedBackend } from "../backends/memcached/backend.ts";
import { MemoryBackend } from "../backends/memory/backend.ts";
import { createCopier } from "../codec/copier.ts";
import { knownKeys } from "../codec/encryption-keys.ts";
import { settingsOf } from "../codec/options.ts";
import type { ResolvedConfig } from "../config/types.ts";
import { parseStoreAddress } from "../core/address/store-url.ts";
import type { Backend } from "../core/backend.ts";
import type { Clock } from "../core/clock.ts";
import { ConfigError } from "../core/errors.ts";
import type { Store } from "../core/namespace.ts";
import { DeferredStore, sharedCode } from "./deferred-store.ts";

/** Settings that caches on one backend object must have in common. */
const SHARED_FIELDS = [
  "operationTimeout",
  "connectTimeout",
  "poolSize",
  "circuitBreaker",
  "serialization",
  "compression",
  "nearCache",
] as const;

interface OpenedStore {
  readonly store: Store;
  readonly config: ResolvedConfig;
}

const stores = new WeakMap<Backend, OpenedStore>();

export function openStore(config: ResolvedConfig, clock: Clock): Store {
  const backend = openBackend(config);
  let opened = stores.get(backend);
  if (opened === undefined) {
    opened = { store: makeStore(backend, config, clock), config };
    stores.set(backend, opened);
  } else {
    requireSameSettings(config, opened.config);
    requireSameEncryption(config, opened.config);
  }
  return opened.store;
}

function requireSameSettings(config: ResolvedConfig, first: ResolvedConfig): void {
  for (const field of SHARED_FIELDS) {
    const [given, present] = [JSON.stringify(config[field]), JSON.stringify(first[field])];
    if (given === present) continue;
    throw new ConfigError(
      "CONFIG_INVALID",
      `${field} must be ${present} as in the first cache on this backend object, got ${given}`,
      {
        hint: "Caches on one backend object share its connections: give them the same settings, or separate backends.",
      },
    );
  }
}

/** The secrets are compared, and never shown. */
function requireSameEncryption({ encryption }: ResolvedConfig, first: ResolvedConfig): void {
  if (encryption === first.encryption) return;
  const [given, present] = [encryption, first.encryption].map((settings) => settings || undefined);
  if (process.getBuiltinModule("node:util").isDeepStrictEqual(given?.config, present?.config)) return;
  throw new ConfigError("CONFIG_INVALID", "encryption must be as in the first cache on this backend object", {
    hint: "Give caches on one backend object the same keys, or separate backends.",
  });
}

function makeStore(backend: Backend, config: ResolvedConfig, clock: Clock): Store {
  const { serialization, compression, encryption } = config;
  const copier = createCopier(settingsOf({ serialization, compression }).limits);
  // At once, even if the code is loaded later: an application may overwrite its secrets when it has passed them.
  const keys = encryption === false ? undefined : knownKeys(encryption.config);
  // Its values never leave the process.
  if (backend instanceof MemoryBackend) return backend.store(clock, copier);
  const parts = { config, clock, keys };
  return sharedCode.loaded !== undefined && sharedCode.isReady
    ? sharedCode.loaded.openShared(backend, parts)
    : new DeferredStore(backend, parts, copier);
}

function openBackend({ backend, kvUrl, username, password }: ResolvedConfig): Backend {
  const login = {
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
  };
  if (backend !== undefined) {
    rejectLogin(login, "a backend object has credentials of its own");
    return backend;
  }
  const address = parseStoreAddress(kvUrl);
  if (["memory", "file", "memcached"].includes(address.kind))
    rejectLogin(login, `they are for Redis and Valkey, and kvUrl is a ${address.kind} address`);
  switch (address.kind) {
    case "memory":
      return new MemoryBackend(address.options);
    case "file":
      return new DiskBackend({ kvUrl });
    case "memcached":
      return new MemcachedBackend({ kvUrl });
    default:
      return new KvBackend({ kvUrl, ...login });
  }
}

function rejectLogin(login: object, why: string): void {
  const [field] = Object.keys(login);
  if (field === undefined) return;
  throw new ConfigError("CONFIG_INVALID", `username and password cannot be used here: ${why}, got ${field}`);
}
