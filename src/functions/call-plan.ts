// Turns a call of a wrapped function into a getOrSet: its key, options and load.
import { requireOptions } from "../core/arguments.ts";
import { ConfigError, describeArrival } from "../core/errors.ts";
import { type FunctionRecord, functionRecordIn, optionsOfCalls } from "../core/function-record.ts";
import type { GetOrSetOptions, LoadContext, Tags } from "../core/options.ts";
import { snapshot } from "../core/snapshot.ts";
import { type ArgumentKeys, argumentKeys } from "./argument-key.ts";
import type { UncheckedOptions } from "./cached-options.ts";
import { type CacheForFunctions, defaultCache } from "./default-cache.ts";
import { claimName, type NameOwner } from "./function-name.ts";

export interface WarmOptions {
  /** How many calls run at a time. Default: 8. */
  readonly concurrency?: number;
}

const WARM_OPTION_NAMES: readonly (keyof WarmOptions)[] = ["concurrency"];

type Callback<Result> = (this: unknown, ...args: unknown[]) => Result;

/** A function's name, its keys, and its claim to the name in a cache. */
export interface Identity {
  readonly name: string;
  readonly keys: ArgumentKeys;
  /** Returns where its calls are counted. Throws ConfigError NAME_TAKEN. */
  claim(cache: CacheForFunctions): FunctionRecord;
}

export function identity(name: string, owner: NameOwner): Identity {
  let claimedIn: CacheForFunctions | undefined;
  let record: FunctionRecord;
  return {
    name,
    keys: argumentKeys(name),
    claim(cache) {
      if (cache === claimedIn) return record;
      claimName(cache, name, owner);
      claimedIn = cache;
      record = functionRecordIn(cache, name);
      return record;
    },
  };
}

export class CallPlan {
  readonly fn: Callback<unknown>;
  /** The identity of calls on this object. */
  readonly identityFor: (self: unknown) => Identity;
  readonly #cache: CacheForFunctions | undefined;
  readonly #key: Callback<unknown> | undefined;
  readonly #tags: Callback<Tags> | undefined;
  readonly #resultTags: Callback<Tags> | undefined;
  readonly #when: Callback<boolean> | undefined;
  /** Options of every call; undefined if there are none. */
  readonly #options: GetOrSetOptions | undefined;
  #record: FunctionRecord | undefined;
  /** The same, of calls that this record counts. */
  #countedOptions: GetOrSetOptions | undefined;

  constructor(fn: Callback<unknown>, options: UncheckedOptions, identityFor: (self: unknown) => Identity) {
    const { cache, name: _, key, tags, resultTags, when, ...forEveryCall } = options;
    this.fn = fn;
    this.identityFor = identityFor;
    this.#cache = cache;
    this.#key = key as Callback<unknown> | undefined;
    this.#resultTags = resultTags as Callback<Tags> | undefined;
    this.#when = when as Callback<boolean> | undefined;
    this.#tags = typeof tags === "function" ? (tags as Callback<Tags>) : undefined;
    const given =
      tags === undefined || typeof tags === "function"
        ? forEveryCall
        : { ...forEveryCall, tags: typeof tags === "string" ? [tags] : [...tags] };
    this.#options = Object.keys(given).length === 0 ? undefined : given;
  }

  /** Reports errors before the first call where possible; the default cache may be set later. */
  prepare(self: unknown): void {
    const { claim } = this.identityFor(self);
    if (this.#cache !== undefined) claim(this.#cache);
  }

  call(self: unknown, args: unknown[]): Promise<unknown> {
    try {
      const known = this.identityFor(self);
      const cache = this.#cache ?? defaultCache(known.name);
      const record = known.claim(cache);
      const mayChange = this.#mayChange(args);
      const own = mayChange ? snapshot(args) : args;
      const key = this.#keyOf(known, self, own);
      const options = this.#optionsFor(self, own, this.#optionsWith(record));
      record.calls++;
      return cache.getOrSet(key, this.#load(self, own, key, record, mayChange), options);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  key(self: unknown, args: unknown[]): string {
    return this.#keyOf(this.identityFor(self), self, args);
  }

  async refresh(self: unknown, given: unknown[]): Promise<unknown> {
    const mayChange = this.#mayChange(given);
    const args = mayChange ? snapshot(given) : given;
    const options = { ...this.#optionsFor(self, args, this.#options), forceLoad: true };
    const key = this.key(self, args);
    const known = this.identityFor(self);
    const cache = this.#cache ?? defaultCache(known.name);
    return cache.getOrSet(key, this.#load(self, args, key, known.claim(cache), mayChange), options);
  }

  async invalidate(self: unknown, args: unknown[]): Promise<boolean> {
    return (await this.#claimedCache(this.identityFor(self)).delete(this.key(self, args))) > 0;
  }

  async run(self: unknown, args: unknown[]): Promise<unknown> {
    return this.fn.apply(self, args);
  }

  async warm(self: unknown, argsList: Iterable<unknown[]>, options: WarmOptions = {}): Promise<void> {
    requireOptions(options, WARM_OPTION_NAMES);
    const { concurrency = 8 } = options;
    if (!Number.isInteger(concurrency) || concurrency < 1) {
      throw new ConfigError(
        "ARGUMENT_INVALID",
        `warm(): concurrency must be a positive integer; got ${describeArrival(concurrency)}.`,
      );
    }
    const waiting = argsList[Symbol.iterator]();
    const failures: unknown[] = [];
    let calls = 0;
    const worker = async (): Promise<void> => {
      for (let next = waiting.next(); !next.done; next = waiting.next()) {
        calls++;
        const call = Array.isArray(next.value)
          ? this.call(self, next.value)
          : Promise.reject(notAList(next.value));
        await call.catch((error: unknown) => failures.push(error));
      }
    };
    await Promise.all(Array.from({ length: concurrency }, worker));
    if (failures.length > 0) {
      throw new AggregateError(
        failures,
        `${failures.length} of ${calls} calls of ${this.fn.name}() failed while warming.`,
      );
    }
  }

  #claimedCache({ name, claim }: Identity): CacheForFunctions {
    const cache = this.#cache ?? defaultCache(name);
    claim(cache);
    return cache;
  }

  #keyOf({ keys }: Identity, self: unknown, args: unknown[]): string {
    return keys(this.#key === undefined ? args : [this.#key.apply(self, args)]);
  }

  #optionsFor(
    self: unknown,
    args: unknown[],
    options: GetOrSetOptions | undefined,
  ): GetOrSetOptions | undefined {
    return this.#tags === undefined ? options : { ...options, tags: this.#tags.apply(self, args) };
  }

  #optionsWith(record: FunctionRecord): GetOrSetOptions | undefined {
    if (record !== this.#record) {
      this.#record = record;
      this.#countedOptions = optionsOfCalls(record, this.#options);
    }
    return this.#countedOptions;
  }

  /** A load without a parameter cannot call setTags, so the cache need not prepare for late tags. */
  #load(
    self: unknown,
    args: unknown[],
    key: string,
    record: FunctionRecord,
    mayChange: boolean,
  ): (context: LoadContext<unknown>) => Promise<unknown> {
    const isPlain = this.#when === undefined && this.#resultTags === undefined;
    if (isPlain && !mayChange) return () => this.#counted(record, self, args);
    if (this.#resultTags !== undefined) return (context) => this.#loadWith(context, self, args, key, record);
    return (...[context]) => this.#loadWith(context, self, args, key, record);
  }

  async #counted(record: FunctionRecord, self: unknown, args: unknown[]): Promise<unknown> {
    const startedAt = record.begin();
    let hasFailed = true;
    try {
      const result = await this.fn.apply(self, args);
      hasFailed = false;
      return result;
    } finally {
      record.loaded(startedAt, hasFailed);
    }
  }

  async #loadWith(
    context: LoadContext<unknown>,
    self: unknown,
    args: unknown[],
    key: string,
    record: FunctionRecord,
  ): Promise<unknown> {
    // The caller may have changed an argument since the key was built, while the store was being read.
    const isOther = this.#mayChange(args) && !this.#has(key, self, args);
    const result = await this.#counted(record, self, args);
    if (isOther || !this.#isWanted(self, result, args)) context.skip();
    else if (this.#resultTags !== undefined) context.setTags(this.#resultTags.call(self, result, ...args));
    return result;
  }

  /** Whether `when` wants the result stored. */
  #isWanted(self: unknown, result: unknown, args: unknown[]): boolean {
    if (this.#when === undefined) return true;
    const verdict: unknown = this.#when.call(self, result, ...args);
    if (verdict instanceof Promise) throw lateVerdict(verdict);
    return Boolean(verdict);
  }

  #mayChange(args: readonly unknown[]): boolean {
    if (this.#key !== undefined) return true;
    for (const value of args) if (typeof value === "object" && value !== null) return true;
    return false;
  }

  #has(key: string, self: unknown, args: unknown[]): boolean {
    try {
      return this.key(self, args) === key;
    } catch {
      return false;
    }
  }
}

/** Every promise is truthy, so the result would be stored whatever it resolves to. */
function lateVerdict(verdict: Promise<unknown>): ConfigError {
  verdict.catch(() => {});
  return new ConfigError(
    "ARGUMENT_INVALID",
    "cached(): when must return true or false at once; got a promise. What it needs to know must be in the result.",
  );
}

function notAList(arrived: unknown): ConfigError {
  return new ConfigError(
    "ARGUMENT_INVALID",
    `warm(): expected a list of argument lists, such as [[1], [2]]; one of them is ${describeArrival(arrived)}.`,
  );
}
