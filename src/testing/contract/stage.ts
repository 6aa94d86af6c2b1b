// The fixture of a contract case: clients and caches on the subject's store, unique keys, and control of time.
import assert from "node:assert/strict";
import { MessageChannel } from "node:worker_threads";
import type { CacheConfig } from "../../config/types.ts";
import type { Backend } from "../../core/backend.ts";
import { type Clock, systemClock } from "../../core/clock.ts";
import type { XCache } from "../../xcache.ts";
import { cacheWithClock, settle } from "../manual-clock.ts";
import type { ContractOffers, ContractSubject, OpenSubject } from "./subject.ts";

/** Step and limit for advancing time while waiting. */
const STEP_MS = 5;
const PATIENCE_MS = 15_000;
/** How often what takes a second on a busy machine is tried again. */
const LATE_TRIES = 2;
/** Deadline of store operations in caches: generous, so that only a hang exceeds it. */
const OPERATION_TIMEOUT_MS = 10_000;

export class Stage {
  readonly offers: ContractOffers;
  readonly clock: Clock;
  /** Prefix of every key of this case, and the key prefix of its caches. */
  readonly prefix: string;
  readonly #opened: OpenSubject;
  readonly #endings: (() => Promise<void>)[] = [];
  #client: Promise<Backend> | undefined;

  private constructor(offers: ContractOffers, opened: OpenSubject) {
    this.offers = offers;
    this.#opened = opened;
    this.clock = opened.clock ?? systemClock;
    this.prefix = `contract-${Buffer.from(systemClock.token(), "latin1").toString("hex")}`;
  }

  /** Runs one case and closes everything it opened, even if it fails. */
  static async play(subject: ContractSubject, run: (stage: Stage) => Promise<void>): Promise<void> {
    const stage = new Stage(subject.offers, await subject.open());
    try {
      await run(stage);
    } finally {
      await stage.#close();
    }
  }

  /** The stored key of the entry whose user key is `name`. */
  key(name: string): string {
    return `${this.prefix}:${name}`;
  }

  /** The subject's backend, neither opened nor connected by the suite. */
  get bare(): Backend {
    return this.#opened.backend;
  }

  /** The backend, opened and connected. */
  client(): Promise<Backend> {
    this.#client ??= this.#connect(this.bare);
    return this.#client;
  }

  /** Another client of the same store, opened and connected. */
  async second(): Promise<Backend> {
    return this.#connect(await this.#another());
  }

  /** A cache on the backend. Its default key prefix is `prefix`. */
  cache(config: CacheConfig = {}): XCache {
    return this.#cacheOn(this.bare, config);
  }

  /** A cache with the same prefix on another client, as in another process. */
  async secondCache(config: CacheConfig = {}): Promise<XCache> {
    return this.#cacheOn(await this.#another(), config);
  }

  /** A short lifetime for entries that must expire during the case. */
  get shortMs(): number {
    return Math.max(100, this.bare.capabilities.ttlResolutionMs);
  }

  /** Advances time until a lifetime has certainly ended. */
  async pass(lifetimeMs: number): Promise<void> {
    const { capabilities } = this.bare;
    // Rounded up to whole steps, of which the first may have just begun.
    const lag = capabilities.ttlResolutionMs > 1 ? 2 * capabilities.ttlResolutionMs : 0;
    await this.advance(lifetimeMs + lag + this.bare.clockErrorMs() + 20);
  }

  async advance(ms: number): Promise<void> {
    await (this.#opened.advance?.(ms) ?? realTime(ms));
  }

  /** Advances time until `promise` settles, and returns its result. */
  async until<T>(promise: Promise<T>, what = "the awaited call"): Promise<T> {
    let settled = false;
    const mark = (): void => {
      settled = true;
    };
    promise.then(mark, mark);
    await settle();
    for (let passed = 0; !settled; passed += STEP_MS) {
      assert.ok(passed < PATIENCE_MS, `${what} did not settle within ${PATIENCE_MS} ms`);
      await this.advance(STEP_MS);
    }
    return promise;
  }

  /** The result of a call that should not join a held load. In real time, where a busy machine may be late, it is repeated. */
  async unheld<T>(call: () => Promise<T>, noticeMs: number): Promise<T> {
    const tries = this.#opened.advance === undefined ? LATE_TRIES : 0;
    for (let at = 0; at < tries; at++) {
      const result = await Promise.race([call().then((value) => ({ value })), this.advance(noticeMs)]);
      if (result !== undefined) return result.value;
    }
    return this.until(call(), "the newer call");
  }

  /** Waits until `check` returns true; fails after `boundMs`. */
  async eventually(
    what: string,
    check: () => boolean | Promise<boolean>,
    boundMs = this.pushBoundMs,
  ): Promise<void> {
    for (let passed = 0; !(await check()); passed += STEP_MS) {
      assert.ok(passed <= boundMs, `${what}: not within ${boundMs} ms`);
      await this.advance(STEP_MS);
    }
  }

  /** How long a client may use its local copies: not at all without push. */
  get pushBoundMs(): number {
    return this.offers.push ? (this.offers.pushBoundMs ?? 1_000) : 0;
  }

  async #another(): Promise<Backend> {
    assert.ok(this.#opened.second, "a subject that offers `shared` must implement `second`");
    return this.#opened.second();
  }

  async #connect(backend: Backend): Promise<Backend> {
    backend.open?.({
      clock: this.clock,
      operationTimeoutMs: OPERATION_TIMEOUT_MS,
      connectTimeoutMs: OPERATION_TIMEOUT_MS,
      poolSize: 1,
      report: () => {},
      evicted: () => {},
      onServer: async () => {},
    });
    this.#endings.push(() => backend.disconnect());
    await backend.connect();
    return backend;
  }

  #cacheOn(backend: Backend, config: CacheConfig): XCache {
    const whole = {
      keyPrefix: this.prefix,
      operationTimeout: OPERATION_TIMEOUT_MS / 1000,
      ...config,
    };
    const cache = this.#opened.cache?.(backend, whole) ?? cacheWithClock({ ...whole, backend }, this.clock);
    this.#endings.push(() => cache.disconnect());
    return cache;
  }

  async #close(): Promise<void> {
    try {
      for (const end of this.#endings.reverse()) await this.until(end(), "disconnect");
    } finally {
      await this.#opened.close();
    }
  }
}

/** The clock's timers do not keep the process alive; an open port does. */
function realTime(ms: number): Promise<void> {
  const { port1 } = new MessageChannel();
  port1.ref();
  return new Promise((resolve) => {
    systemClock.after(ms, () => {
      port1.close();
      resolve();
    });
  });
}

/** A test case: a sentence that names a rule, and the function that checks it. */
export interface ContractCase {
  readonly rule: string;
  readonly run: (stage: Stage) => Promise<void>;
}

/** Cases on one topic. Which ones apply depends on what the subject offers. */
export interface ContractGroup {
  readonly name: string;
  cases(offers: ContractOffers): readonly ContractCase[];
}

export function rule(sentence: string, run: (stage: Stage) => Promise<void>): ContractCase {
  return { rule: sentence, run };
}
