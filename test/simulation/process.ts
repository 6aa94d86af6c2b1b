// A simulated process: the real cache on the real Redis client, with its own clock and its own connections.
import { KvBackend } from "../../src/backends/kv/backend.ts";
import { sharedCode } from "../../src/cache/deferred-store.ts";
import { CacheLifecycle, CacheScope } from "../../src/cache/lifecycle.ts";
import * as openShared from "../../src/cache/open-shared.ts";
import { resolveConfig } from "../../src/config/resolve.ts";
import type { CacheConfig, ResolvedConfig } from "../../src/config/types.ts";
import { XCache } from "../../src/xcache.ts";
import { addressOf } from "./socket.ts";
import type { ProcessClock } from "./time.ts";

// A schedule must not depend on whether an earlier one has loaded code.
sharedCode.loaded ??= openShared;

export const OPERATION_TIMEOUT_MS = 1_000;
export const BREAKER_RESET_MS = 3_000;
export const BREAKER_THRESHOLD = 5;

export type ProcessState = "running" | "frozen" | "dead";

export interface ProcessSettings {
  /** Whether it has a near tier. */
  readonly near: boolean;
  /** Connections to the store that its calls use. */
  readonly poolSize: number;
}

/** Checked once: thousands of worlds have the same. */
const configs = new Map<string, ResolvedConfig>();

function configOf({ near, poolSize }: ProcessSettings): ResolvedConfig {
  const name = `${near} ${poolSize}`;
  const config =
    configs.get(name) ??
    resolveConfig({
      keyPrefix: "x",
      poolSize,
      enableMetrics: false,
      nearCache: near ? { maxEntries: 16 } : false,
      operationTimeout: OPERATION_TIMEOUT_MS / 1_000,
      connectTimeout: 2,
      circuitBreaker: { failureThreshold: BREAKER_THRESHOLD, resetTimeout: BREAKER_RESET_MS / 1_000 },
    });
  configs.set(name, config);
  return config;
}

export class SimulatedProcess {
  readonly index: number;
  readonly clock: ProcessClock;
  readonly cache: XCache;
  readonly root: CacheLifecycle;
  state: ProcessState = "running";
  /** disconnect() was called. */
  isDisconnected = false;
  /** How many calls to the store timed out. */
  timeouts = 0;

  readonly #failed: (error: Error) => void;
  readonly #children = new Set<string>();

  /** `failed` is called with every failure that no caller sees. */
  constructor(index: number, clock: ProcessClock, settings: ProcessSettings, failed: (error: Error) => void) {
    this.#failed = failed;
    this.index = index;
    this.clock = clock;
    const config = { ...configOf(settings), backend: new KvBackend({ kvUrl: addressOf(index) }) };
    this.root = new CacheLifecycle(config, clock);
    const namespace = this.root.store.namespace(config.keyPrefix);
    this.cache = new XCache(new CacheScope(this.root, namespace) as CacheConfig);
    this.cache.on("error", ({ error }) => failed(error));
  }

  /** The cache of a namespace; "" is the root. */
  in(namespace: string): XCache {
    if (namespace === "") return this.cache;
    const child = this.cache.namespace(namespace);
    if (!this.#children.has(namespace)) {
      this.#children.add(namespace);
      child.on("error", ({ error }) => this.#failed(error));
    }
    return child;
  }
}
