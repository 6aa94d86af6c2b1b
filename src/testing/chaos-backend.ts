// ChaosBackend: wraps any backend and lets it be slow, fail, hang or lose replies when a test says so.

import { requireOptions } from "../core/arguments.ts";
import type {
  Backend,
  BackendHost,
  Capabilities,
  KeyedRecord,
  PoolState,
  PushChannel,
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
  /** What `random` draws from. Default: a random one; it is in every error that chance causes, and in `seed`. */
  readonly seed?: number;
  /** The clock that delays are counted on. Default: that of the cache which opens the backend. */
  readonly clock?: Clock;
}

/**
 * A backend that does what the wrapped one does until it is told otherwise:
 *
 * ```ts
 * const store = new ChaosBackend(new MemoryBackend());
 * const cache = new XCache({ backend: store });
 * store.hang();
 * await cache.get("key"); // rejects with OperationTimeoutError
 * store.resume();
 * ```
 *
 * Faults asked for apply to the calls made from then on, in the order they were asked for. What makes no sense, such as
 * an operation that there is not, throws ConfigError.
 */
export class ChaosBackend implements Backend {
  readonly name: string;
  readonly capabilities: Capabilities;
  declare readonly push?: PushChannel;
  declare readonly touch?: (keys: readonly string[]) => Promise<void>;
  declare readonly fill?: () => Promise<number | undefined>;
  declare readonly makesRoom?: () => boolean;
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
    // What is delayed here may overtake: the order of the calls is not that of the changes.
    this.capabilities = { ...inner.capabilities, ordered: false };
    this.#channel = inner.push && new ChaosPush(inner.push, () => this.#clock ?? systemClock);
    if (this.#channel !== undefined) this.push = this.#channel;
    if (inner.touch !== undefined) this.touch = (keys) => this.#run("touch", async () => inner.touch?.(keys));
    if (inner.fill !== undefined) this.fill = () => this.#run("fill", async () => inner.fill?.());
    if (inner.makesRoom !== undefined) this.makesRoom = inner.makesRoom.bind(inner);
    if (inner.pool !== undefined) this.pool = inner.pool.bind(inner);
    if (inner.describe !== undefined) this.describe = inner.describe.bind(inner);
  }

  /** Repeats a run: pass it as `seed`. */
  get seed(): number {
    return this.#script.seed;
  }

  /** How many calls were made, also those that failed; of one operation or of all. */
  calls(target: ChaosTarget = "all"): number {
    requireTarget(target);
    if (target !== "all") return this.#calls.get(target) ?? 0;
    return [...this.#calls.values()].reduce((sum, count) => sum + count, 0);
  }

  /** Every call takes this many milliseconds, half on the way to the store and half back. 0 ends it. */
  delay(ms: number | ((operation: ChaosOperation) => number)): this {
    this.#script.delays(typeof ms === "function" ? ms : always(requireSpan("a delay", ms)));
    return this;
  }

  /** Calls are answered with this error and do nothing. */
  fail(target: ChaosTarget, error: Error, times = Number.POSITIVE_INFINITY): this {
    this.#script.add(target, { when: "before", error: requireError(error) }, times);
    return this;
  }

  /** Calls never reach the store and reject with ConnectionError. */
  drop(target: ChaosTarget, times = Number.POSITIVE_INFINITY): this {
    return this.fail(target, lostConnection("the call was dropped"), times);
  }

  /**
   * Calls reach the store, their replies do not come back: the outcome is unknown. They reject with ConnectionError, or
   * with `hang` wait for `resume` to do so.
   */
  lose(target: ChaosTarget, times = Number.POSITIVE_INFINITY, then: "reject" | "hang" = "reject"): this {
    const error = then === "reject" ? lostConnection("the reply was lost") : undefined;
    this.#script.add(target, { when: "after", error }, times);
    return this;
  }

  /** Calls wait, before they reach the store, until `resume`. */
  hang(target: ChaosTarget = "all"): this {
    requireTarget(target);
    this.#hanging = target;
    return this;
  }

  /** Lets what hangs go on. */
  resume(): this {
    this.#hanging = undefined;
    const held = [...this.#held];
    this.#held.clear();
    for (const go of held) go();
    return this;
  }

  /** Faults by chance, drawn from the seed, where no other fault was asked for. */
  random(chances: ChaosChances): this {
    this.#script.chances(chances);
    return this;
  }

  /** Pushes arrive this many milliseconds late. 0 ends it. */
  delayPushes(ms: number): this {
    this.#channel?.delay(requireSpan("a delay", ms));
    return this;
  }

  /** The push channel is down: nothing arrives and its epoch is 0. */
  losePushes(): this {
    this.#channel?.lose();
    return this;
  }

  /** The push channel is up again, under a new epoch, and says that everything may have changed. */
  restorePushes(): this {
    this.#channel?.restore();
    return this;
  }

  /** Everything works from now on; what hangs goes on. */
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
