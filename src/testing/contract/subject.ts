// The input of the contract suite: the backend under test and the test runner.
import type { CacheConfig } from "../../config/types.ts";
import type { Backend } from "../../core/backend.ts";
import type { Clock } from "../../core/clock.ts";
import type { XCache } from "../../xcache.ts";

/** The two functions the suite needs from a test runner. Those of node:test, vitest and jest can be passed as they are. */
export interface ContractRunner {
  describe(name: string, body: () => void): unknown;
  it(name: string, body: () => Promise<void>): unknown;
}

/** The features the backend must have. The suite also checks that it rejects calls for the others. */
export interface ContractOffers {
  /** Other processes see the same records. Requires `OpenSubject.second`. */
  readonly shared: boolean;
  /** Keys can be listed. */
  readonly scan: boolean;
  /** The backend pushes changes within `pushBoundMs`. */
  readonly push: boolean;
  /** Maximum delay of a push, in milliseconds of the subject's time. Default: 1000. */
  readonly pushBoundMs?: number;
  /** Largest payload the store accepts, in bytes; it must reject larger ones. Default: no limit. */
  readonly maxPayloadBytes?: number;
}

/** A backend for one case. The suite itself calls `open` and `connect` on it. */
export interface OpenSubject {
  readonly backend: Backend;
  /** Returns another client of the same store, as another process would have. */
  second?(): Promise<Backend>;
  /** Advances the store's time. Default: waits in real time. */
  advance?(ms: number): Promise<void>;
  /** The clock of the backends and of the caches that use them. Default: the system clock. */
  readonly clock?: Clock;
  /** Creates the caches under test. Default: an XCache on `backend` with `clock`. */
  cache?(backend: Backend, config: CacheConfig): XCache;
  /** Called once at the end of the case, after all clients were disconnected. */
  close(): Promise<void>;
}

/**
 * A backend under test. Each case opens it and uses unique keys, so the store need not be emptied and cases may run
 * concurrently.
 */
export interface ContractSubject {
  readonly name: string;
  readonly offers: ContractOffers;
  open(): Promise<OpenSubject>;
}
