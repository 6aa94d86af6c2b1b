// ChaosBackend: wraps any backend and injects delays, errors, hangs and lost replies on demand.

import { requireOptions } from "../core/arguments.ts";
import type {
  Backend,
  BackendHost,
  Capabilities,
  KeyedRecord,
  PoolState,
  PushChannel,
  Restriction,
  ScanItem,
  ScanOptions,
  SwapResult,
  Usage,
} from "../core/backend.ts";
import { type Clock, systemClock } from "../core/clock.ts";
import type { StoreRecord, Token } from "../core/record.ts";
import { ChaosPush } from "./chaos-push.ts";
import {
  type ChaosChances,
  type ChaosOperation,
  ChaosScript,
  type ChaosTarget,
  lostConnection,
  requireTarget,
} from "./chaos-script.ts";
import { seededRandom } from "./manual-clock.ts";
import { requireError, requireMethods, requireSpan, requireWhole } from "./test-arguments.ts";

export interface ChaosOptions {
  /** Seed for `random`. Default: a random one, reported by `seed` and in the message of every random fault. */
  readonly seed?: number;
  /** The clock that times delays. Default: the clock of the cache that opens the backend. */
  readonly clock?: Clock;
}

/**
 * Behaves like the wrapped backend until a fault is requested:
 *
 * ```ts
 * const store = new ChaosBackend(new MemoryBackend());
 * const cache = new XCache({ backend: store });
 * store.hang();
 * await cache.get("key"); // rejects with OperationTimeoutError
 * store.resume();
 * ```
 *
 * Faults apply to calls made after the request, in the order of the requests. Every method throws ConfigError for invalid
 * arguments, such as the name of an unknown operation.
 */
export class ChaosBackend implements Backend {
  readonly name: string;
  readonly capabilities: Capabilities;
  declare readonly push?: PushChannel;
  declare readonly touch?: (keys: readonly string[]) => Promise<void>;
  declare readonly memoryUsage?: () => Promise<number | undefined>;
  declare readonly makesRoom?: () => boolean;
  declare readonly restrictions?: (key: string) => Promise<readonly Restriction[]>;
  declare readonly pool?: () => PoolState;
  declare readonly describe?: () => Promise<Readonly<Record<string, string | number | boolean>>>;
  readonly #inner: Backend;
  readonly #script: ChaosScript;
  readonly #channel: ChaosPush | undefined;
  readonly #calls = new Map<ChaosOperation, number>();
  readonly #held = new Set<() => void>();
  #clock: Clock | undefined;
  #hanging: ChaosTarget | undefined;

  constructor(inner: Backend, options: ChaosOptions = {}) {
    requireMethods("the wrapped backend", inner, ["connect", "disconnect", "read", "write", "swap", "take"]);
    requireOptions(options, ["seed", "clock"]);
    const seed = requireWhole("seed", options.seed ?? Math.floor(systemClock.random() * 2 ** 32));
    this.#inner = inner;
    this.#script = new ChaosScript(seed, seededRandom(seed));
    this.#clock = options.clock;
    this.name = inner.name;
    // Delays can reorder calls, so changes are not applied in the order in which they were issued.
    this.capabilities = { ...inner.capabilities, ordered: false };
    this.#channel = inner.push && new ChaosPush(inner.push, () => this.#clock ?? systemClock);
    if (this.#channel !== undefined) this.push = this.#channel;
    if (inner.touch !== undefined) this.touch = (keys) => this.#run("touch", async () => inner.touch?.(keys));
    if (inner.memoryUsage !== undefined)
      this.memoryUsage = () => this.#run("memoryUsage", async () => inner.memoryUsage?.());
    if (inner.makesRoom !== undefined) this.makesRoom = inner.makesRoom.bind(inner);
    if (inner.restrictions !== undefined) this.restrictions = inner.restrictions.bind(inner);
    if (inner.pool !== undefined) this.pool = inner.pool.bind(inner);
    if (inner.describe !== undefined) this.describe = inner.describe.bind(inner);
  }

  /** The seed in use. Pass it as the `seed` option to repeat a run. */
  get seed(): number {
    return this.#script.seed;
  }

  /** The number of calls made, including failed ones, of one operation or of all. */
  calls(target: ChaosTarget = "all"): number {
    requireTarget(target);
    if (target !== "all") return this.#calls.get(target) ?? 0;
    return [...this.#calls.values()].reduce((sum, count) => sum + count, 0);
  }

  /** Delays every call by this many milliseconds, half before and half after it reaches the store. 0 removes the delay. */
  delay(ms: number | ((operation: ChaosOperation) => number)): this {
    this.#script.delays(typeof ms === "function" ? ms : always(requireSpan("a delay", ms)));
    return this;
  }

  /** Calls reject with this error without reaching the store: the next `times` calls, by default all. */
  fail(target: ChaosTarget, error: Error, times = Number.POSITIVE_INFINITY): this {
    this.#script.add(target, { when: "before", error: requireError(error) }, times);
    return this;
  }

  /** Calls reject with ConnectionError without reaching the store: the next `times` calls, by default all. */
  drop(target: ChaosTarget, times = Number.POSITIVE_INFINITY): this {
    return this.fail(target, lostConnection("the call was dropped"), times);
  }

  /**
   * Calls reach the store but their replies are lost, so the caller cannot know the outcome: the next `times` calls, by
   * default all. They reject with ConnectionError, with `"hang"` only after `resume`.
   */
  lose(target: ChaosTarget, times = Number.POSITIVE_INFINITY, then: "reject" | "hang" = "reject"): this {
    const error = then === "reject" ? lostConnection("the reply was lost") : undefined;
    this.#script.add(target, { when: "after", error }, times);
    return this;
  }

  /** Calls wait before they reach the store until `resume`. */
  hang(target: ChaosTarget = "all"): this {
    requireTarget(target);
    this.#hanging = target;
    return this;
  }

  /** Releases all waiting calls and ends `hang`. */
  resume(): this {
    this.#hanging = undefined;
    const held = [...this.#held];
    this.#held.clear();
    for (const go of held) go();
    return this;
  }

  /** Injects random faults, derived from the seed, into calls that no requested fault applies to. */
  random(chances: ChaosChances): this {
    this.#script.chances(chances);
    return this;
  }

  /** Delays pushes by this many milliseconds. 0 removes the delay. */
  delayPushes(ms: number): this {
    this.#channel?.delay(requireSpan("a delay", ms));
    return this;
  }

  /** Takes the push channel down: no push arrives and its epoch is 0. */
  losePushes(): this {
    this.#channel?.lose();
    return this;
  }

  /** Brings the push channel back with a new epoch and reports that every key may have changed. */
  restorePushes(): this {
    this.#channel?.restore();
    return this;
  }

  /** Removes all faults and releases waiting calls. */
  calm(): this {
    this.#script.clear();
    return this.delayPushes(0).restorePushes().resume();
  }

  open(host: BackendHost): void {
    this.#clock ??= host.clock;
    this.#inner.open?.(host);
  }

  now(): number {
    return this.#inner.now();
  }

  clockErrorMs(): number {
    return this.#inner.clockErrorMs();
  }

  connect(): Promise<void> {
    return this.#run("connect", () => this.#inner.connect());
  }

  disconnect(): Promise<void> {
    return this.#run("disconnect", () => this.#inner.disconnect());
  }

  ping(): Promise<void> {
    return this.#run("ping", () => this.#inner.ping());
  }

  read(key: string): Promise<StoreRecord | undefined> {
    return this.#run("read", () => this.#inner.read(key));
  }

  readMany(keys: readonly string[]): Promise<readonly (StoreRecord | undefined)[]> {
    return this.#run("readMany", () => this.#inner.readMany(keys));
  }

  write(item: KeyedRecord): Promise<void> {
    return this.#run("write", () => this.#inner.write(item));
  }

  writeMany(items: readonly KeyedRecord[]): Promise<void> {
    return this.#run("writeMany", () => this.#inner.writeMany(items));
  }

  swap(
    key: string,
    expected: Token | undefined,
    next: Omit<KeyedRecord, "key"> | undefined,
  ): Promise<SwapResult> {
    return this.#run("swap", () => this.#inner.swap(key, expected, next));
  }

  take(key: string): Promise<StoreRecord | undefined> {
    return this.#run("take", () => this.#inner.take(key));
  }

  takeMany(keys: readonly string[]): Promise<readonly (StoreRecord | undefined)[]> {
    return this.#run("takeMany", () => this.#inner.takeMany(keys));
  }

  usage(prefix: string): Promise<Usage> {
    return this.#run("usage", () => this.#inner.usage(prefix));
  }

  async *scan(prefix: string, options?: ScanOptions): AsyncIterable<readonly ScanItem[]> {
    const batches = this.#inner.scan(prefix, options)[Symbol.asyncIterator]();
    try {
      for (;;) {
        const next = await this.#run("scan", () => batches.next());
        if (next.done || options?.signal?.aborted) return;
        yield next.value;
      }
    } finally {
      await batches.return?.();
    }
  }

  async #run<T>(operation: ChaosOperation, call: () => Promise<T>): Promise<T> {
    const made = this.calls() + 1;
    this.#calls.set(operation, this.calls(operation) + 1);
    const fault = this.#script.fault(operation, made);
    const halfMs = this.#script.delayMs(operation) / 2;
    const hanging = this.#hanging;
    if (hanging === "all" || hanging === operation) await this.#untilResumed();
    await this.#pause(halfMs);
    if (fault?.when === "before") throw fault.error;
    const reply = await call();
    await this.#pause(halfMs);
    if (fault === undefined) return reply;
    if (fault.error !== undefined) throw fault.error;
    await this.#untilResumed();
    throw lostConnection("the reply was lost");
  }

  #untilResumed(): Promise<void> {
    return new Promise((resolve) => this.#held.add(resolve));
  }

  async #pause(ms: number): Promise<void> {
    if (ms <= 0) return;
    const clock = this.#clock ?? systemClock;
    await new Promise<void>((resolve) => clock.after(ms, resolve));
  }
}

const always = (ms: number) => (): number => ms;
