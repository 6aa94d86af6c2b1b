// getOrSet: a single flight per key; a result overtaken by an invalidation is returned but never stored or joined.
import type { ChangeLog } from "../change-log.ts";
import type { Clock } from "../clock.ts";
import { disconnectedError, disconnectedNamespace } from "../disconnected-namespace.ts";
import { LoadDecisions, type ResolvedLoadOptions } from "../entry-options.ts";
import { CodecError, ConfigError, describeArrival } from "../errors.ts";
import { endOfTurn } from "../event-loop.ts";
import { toError } from "../events.ts";
import { FewKeys } from "../few-keys.ts";
import type { Admission, EntryOptions, Found, MaybePromise, Namespace } from "../namespace.ts";
import type { Load, LoadContext } from "../options.ts";
import { Flight } from "./flight.ts";
import { type CommitOutcome, type LateTagged, newEnoughCheck } from "./late-tags.ts";
import { LoadLimits, OVERDUE } from "./load-limit.ts";
import { LoadPauses } from "./load-pauses.ts";
import { type Loaded, type Outcome, type StoreLookup, WaitingCall } from "./waiting-call.ts";

/** Called synchronously before the caller's promise settles; saves a promise. Undefined: the call has failed. */
export interface LoadObserver {
  ended(outcome: Loaded | undefined): void;
}

/** When a call began, as far as its load depends on it. */
export interface CallStart {
  /** In the change log. */
  readonly calledAt: number;
  /** Aborts when the cache that was called disconnects, also if the load begins after that. */
  readonly signal: AbortSignal;
}

export interface LoaderHost {
  readonly clock: Clock;
  /** How long callers wait for a load that another one has started. */
  readonly loadLimitMs: number;
  /** The current namespace: one that rejects every call while the cache is disconnected. */
  namespace(): Namespace;
  /** The value for another caller, also while the cache is disconnected. */
  own(value: unknown): unknown;
  /** See Namespace. */
  readonly freezes?: boolean;
  /** Aborts when the cache disconnects. */
  signal(): AbortSignal;
  /** Called once per load that runs. */
  loading?(): void;
  /** Called once per load whose result was stored. */
  stored(key: string, tags: readonly string[]): void;
  /** Called once per load whose result was not stored, with the reason. */
  notStored?(key: string, reason: string): void;
  /** Called with failures that no caller sees: of the store, and of loads nobody waits for. */
  report(error: Error): void;
}

/** A load without a ticket does not notice changes made by other processes: it can be joined for this long at most. */
const MAX_UNNOTIFIED_MS = 1_000;

/** Awaited where a turn of the microtask queue is all that is needed: another promise need not be created for it. */
const SETTLED = Promise.resolve();

const FAILED: StoreLookup = { found: undefined, failed: true };

type Flights = FewKeys<Flight>;

/** Cache objects on one namespace share its change log, and with it their flights. */
const flightsOf = new WeakMap<ChangeLog, Flights>();

/** The load whose synchronous part is running right now: a call made meanwhile comes from the load itself. */
let runningFlights: Flights | undefined;
let runningKey: string | undefined;

export class Loader {
  readonly #changes: ChangeLog;
  readonly #host: LoaderHost;
  readonly #flights: Flights;
  readonly #limits: LoadLimits;
  /** Created by the first failure. */
  #pauses: LoadPauses | undefined;
  #hasReportedTags = false;

  constructor(changes: ChangeLog, host: LoaderHost) {
    this.#changes = changes;
    this.#host = host;
    this.#limits = new LoadLimits(
      host.clock,
      host.loadLimitMs,
      () => host.namespace() !== disconnectedNamespace,
    );
    this.#flights = flightsOf.get(changes) ?? new FewKeys();
    flightsOf.set(changes, this.#flights);
  }

  /** Whether a load of this key is in flight: then reading the store first is pointless. */
  isLoading(key: string): boolean {
    return this.#flights.get(key) !== undefined;
  }

  /** How many callers wait for a load of this key that another call could join; undefined: there is none. */
  callersOf(key: string): number | undefined {
    const flight = this.#flights.get(key);
    if (flight === undefined || flight.limit.isExceeded || this.#isOvertaken(key, flight)) return undefined;
    return flight.waiters;
  }

  /** Whether this stale value is served without another load, since the last one has failed. */
  isPaused(key: string, stale: Pick<Found, "id">): boolean {
    return this.#pauses?.covers(key, stale) === true;
  }

  /** `lookup`: what a read of the store has just returned; `call`: when the call began, unless it is now. */
  load<T>(
    key: string,
    load: Load<T>,
    request: ResolvedLoadOptions,
    observer: LoadObserver,
    lookup?: StoreLookup,
    call: CallStart = { calledAt: this.#changes.now, signal: this.#host.signal() },
  ): Promise<unknown> {
    // The common case: nothing is in flight, and all this caller does is wait for the load to end. It is never taken off the
    // waiters, so that callers who join get copies.
    if (isPlain(request) && this.#flights.get(key) === undefined && this.#pauses?.has(key) !== true) {
      const flight = this.#start(key, load, request, call.signal, lookup, observer);
      flight.waiters++;
      return flight.landing;
    }
    return observed(this.#loadOrJoin(key, load, request, lookup, call), observer);
  }

  async #loadOrJoin<T>(
    key: string,
    load: Load<T>,
    request: ResolvedLoadOptions,
    lookup: StoreLookup | undefined,
    { calledAt, signal }: CallStart,
  ): Promise<Loaded> {
    if (runningFlights === this.#flights && runningKey === key) throw ownKeyError(key);
    let first = lookup;
    // A forced load must not join one that is already running.
    if (request.force) this.#changes.key(key);
    else if (
      request.staleWhileRevalidateMs > 0 ||
      this.#flights.get(key)?.forced === true ||
      this.#pauses?.has(key) === true
    ) {
      const windowMs = request.staleWhileRevalidateMs;
      if (first === undefined) {
        // Not awaited if known at once: a load that ends meanwhile would be repeated.
        const known = this.#find(key);
        first = isPromise(known) ? await known : known;
      }
      const { found } = first;
      if (found?.fresh) return { value: found.value, source: "store" };
      if (found !== undefined) {
        const isRevalidated = isWithin(found, windowMs);
        const isPaused =
          (isRevalidated || isWithin(found, request.staleIfErrorMs)) &&
          this.#pauses?.covers(key, found) === true;
        if (isPaused) return { value: found.value, source: "stale" };
        if (isRevalidated) {
          // The load that was started may get what was found as its stale value.
          const isShared = this.#refresh(key, load, request, signal, first);
          return { value: isShared ? this.#own(found.value) : found.value, source: "stale" };
        }
      }
    }
    const call = new WaitingCall(this.#host.clock, request, () => this.#find(key));
    for (;;) {
      const present = this.#flights.get(key);
      const joined = present === undefined ? undefined : this.#joinable(key, present);
      const flight = joined ?? this.#start(key, load, request, signal, first);
      if (joined === undefined && call.mayEndEarly) this.#watch(flight);
      first = undefined;
      flight.waiters++;
      try {
        const loaded = await call.outcomeOf(
          flight,
          joined === undefined ? undefined : flight.limit.exceeded(),
        );
        if (loaded === OVERDUE) continue;
        const verdict = loaded.isNewEnough && (await call.untilHard(loaded.isNewEnough(calledAt)));
        if (verdict === "too old" || verdict === "unknown") {
          // The next load begins after this call, so there is no third attempt. A store that failed is not asked again.
          if (verdict === "unknown") first = FAILED;
          continue;
        }
        const { source } = loaded;
        const coalesced = joined !== undefined && source === "load";
        if (flight.waiters > 1) return { value: this.#own(loaded.value), source, coalesced };
        return coalesced ? { value: loaded.value, source, coalesced } : loaded;
      } catch (error) {
        const stale = await call.staleOnError(flight);
        if (stale === undefined) throw error;
        this.#host.report(toError(error));
        return stale;
      } finally {
        flight.waiters--;
      }
    }
  }

  /** Lets go of the loads of a disconnected cache, which go on: other processes need not wait for them. */
  async release(): Promise<void> {
    this.#limits.rest();
    const flights = [...this.#flights.values()].filter(({ signal }) => signal.aborted);
    await Promise.allSettled(
      flights.map(async (flight) => {
        const admission = await flight.admission;
        await admission?.ticket?.abandon();
      }),
    );
  }

  /** Starts a load that nobody waits for, unless one is in flight. Returns whether it did. */
  #refresh<T>(
    key: string,
    load: Load<T>,
    request: ResolvedLoadOptions,
    signal: AbortSignal,
    first: StoreLookup,
  ): boolean {
    const present = this.#flights.get(key);
    if (present !== undefined && this.#joinable(key, present) !== undefined) return false;
    this.#watch(this.#start(key, load, request, signal, first));
    return true;
  }

  /** The flight of this key, unless something it depends on has changed since it began, or it takes too long. */
  #joinable(key: string, present: Flight): Flight | undefined {
    if (this.#isOvertaken(key, present)) return undefined;
    if (!present.limit.isExceeded) return present;
    // The result of the next load is the newer one.
    this.#changes.key(key);
    return undefined;
  }

  #start<T>(
    key: string,
    load: Load<T>,
    request: ResolvedLoadOptions,
    signal: AbortSignal,
    first?: StoreLookup,
    observer?: LoadObserver,
  ): Flight {
    const flight = new Flight(request, this.#changes.begin(key), signal);
    this.#flights.set(key, flight);
    flight.landing = this.#fly(key, load, request, first, flight, observer);
    return flight;
  }

  /** Reports the failure of a load if no caller is left that sees it. */
  #watch(flight: Flight): void {
    flight.outcome.catch((error: unknown) => {
      if (flight.waiters === 0) this.#host.report(toError(error));
    });
  }

  /** From now on no caller joins it. */
  #close(key: string, flight: Flight): void {
    if (this.#flights.get(key) === flight) this.#flights.delete(key);
  }

  /** Whether something it depends on has changed since it began, or may have changed unnoticed. */
  #isOvertaken(key: string, { tags, since, beganAt, hasNoTicket, ticket }: Flight): boolean {
    if (this.#changes.touched(key, tags, since)) return true;
    return hasNoTicket
      ? this.#host.clock.now() - beganAt >= MAX_UNNOTIFIED_MS
      : ticket?.noticesChanges?.() === false;
  }

  async #fly<T>(
    key: string,
    load: Load<T>,
    request: ResolvedLoadOptions,
    first: StoreLookup | undefined,
    flight: Flight,
    observer: LoadObserver | undefined,
  ): Promise<unknown> {
    const { force, entry } = request;
    try {
      if (first?.failed) flight.storeFailed = true;
      else {
        // A failing store is called once, then the load runs without it.
        try {
          const namespace = this.#host.namespace();
          let seen = first === undefined ? namespace.find(key) : first.found;
          // What is known at once is not awaited: that would cost as much as the rest.
          if (isPromise(seen)) seen = await seen;
          if (seen?.fresh && !force) return flight.land({ value: seen.value, source: "store" }, this.#own);
          let admission = this.#admit(key, load, request, seen, flight, namespace);
          flight.admission = admission;
          // A wait even so: other calls of this turn still have to come before the load starts, to share it.
          if (isPromise(admission)) admission = await admission;
          else await SETTLED;
          if (admission.found !== undefined)
            return flight.land({ value: admission.found.value, source: "store" }, this.#own);
          flight.ticket = admission.ticket;
          // Without an admission nothing says that a value read earlier was not invalidated since.
          flight.stale = admission.stale;
        } catch (error) {
          flight.storeFailed = true;
          this.#host.report(toError(error));
        }
      }
      flight.hasNoTicket = flight.ticket === undefined;
      if (flight.hasNoTicket) {
        flight.beganAt = this.#host.clock.now();
        // Without a wait for the store, as above.
        await endOfTurn();
      }
      this.#limits.begin(flight.limit);
      const { stale, signal } = flight;
      const decided = new LoadDecisions(entry);
      const begunAt = this.#changes.mark();
      const loaded = await this.#call(key, load, decided.context(stale?.value as T | undefined, signal));
      const value = this.#host.freezes ? this.#own(loaded) : loaded;
      const endedAt = this.#changes.mark();
      let commit = this.#commit(key, value, decided, flight);
      if (isPromise(commit)) commit = await commit;
      this.#pauses?.end(key);
      if (decided.options.tags.length === entry.tags.length)
        return flight.land({ value, source: "load" }, this.#own);
      const ended = { tags: decided.options.tags, begunAt, endedAt, commit };
      return flight.land(this.#tagged(key, load, value, ended, flight), this.#own);
    } catch (error) {
      this.#fail(key, request, flight);
      throw error;
    } finally {
      this.#limits.end(flight.limit);
      this.#changes.end(key);
      this.#close(key, flight);
      observer?.ended(flight.result);
    }
  }

  #admit<T>(
    key: string,
    load: Load<T>,
    { entry, lock, force }: ResolvedLoadOptions,
    seen: Found | undefined,
    { since, signal }: Flight,
    namespace: Namespace,
  ): MaybePromise<Admission> {
    if (signal.aborted) throw disconnectedError();
    const lateTags = namesTags(load);
    return namespace.admit(key, {
      entry,
      since,
      lock,
      force,
      lateTags,
      seen,
      limitMs: this.#host.loadLimitMs,
      signal,
    });
  }

  /** The outcome of a load that has named tags. */
  #tagged<T>(
    key: string,
    load: Load<T>,
    value: unknown,
    ended: Pick<LateTagged, "tags" | "begunAt" | "endedAt" | "commit">,
    { ticket, signal }: Flight,
  ): Outcome {
    if (ticket?.areCurrent !== undefined && !namesTags(load)) this.#reportUndeclaredTags(key);
    const isTouched = this.#changes.tagsTouched(ended.tags, ended.begunAt);
    const report = (error: Error): void => this.#host.report(error);
    return {
      value,
      source: "load",
      isNewEnough: newEnoughCheck({ ...ended, isTouched, ticket, signal, report }),
    };
  }

  #fail(key: string, request: ResolvedLoadOptions, flight: Flight): void {
    void flight.ticket?.abandon();
    // A later caller must start a new load, not get an error from before its call.
    this.#close(key, flight);
    const windowMs = Math.max(request.staleIfErrorMs, request.staleWhileRevalidateMs);
    if (flight.stale?.fresh !== false || !isWithin(flight.stale, windowMs)) return;
    this.#pauses ??= new LoadPauses(this.#host.clock);
    this.#pauses.failed(key, flight.stale);
  }

  #call<T>(key: string, load: Load<T>, context: LoadContext<T>): T | Promise<T> {
    this.#host.loading?.();
    const outerFlights = runningFlights;
    const outerKey = runningKey;
    runningFlights = this.#flights;
    runningKey = key;
    try {
      return load(context);
    } finally {
      runningFlights = outerFlights;
      runningKey = outerKey;
    }
  }

  /** Stores what was loaded, unless the load decided otherwise. */
  #commit(key: string, value: unknown, decided: LoadDecisions, flight: Flight): MaybePromise<CommitOutcome> {
    const { ticket, signal } = flight;
    const { skipped, options } = decided;
    if (ticket === undefined || value === undefined || skipped || signal.aborted) {
      void ticket?.abandon();
      this.#host.notStored?.(key, whyNotStored(value, decided, flight));
      return "skipped";
    }
    try {
      const committed = ticket.commit(value, options);
      return isPromise(committed)
        ? this.#committed(key, committed, options)
        : this.#judged(key, committed, options);
    } catch (error) {
      return this.#notCommitted(key, error);
    }
  }

  async #committed(key: string, committed: Promise<boolean>, options: EntryOptions): Promise<CommitOutcome> {
    try {
      return this.#judged(key, await committed, options);
    } catch (error) {
      return this.#notCommitted(key, error);
    }
  }

  #judged(key: string, isStored: boolean, { tags }: EntryOptions): CommitOutcome {
    if (isStored) {
      this.#host.stored(key, tags);
      return "stored";
    }
    this.#host.notStored?.(key, "the key or one of its tags was written or invalidated while it ran");
    return "refused";
  }

  #notCommitted(key: string, error: unknown): CommitOutcome {
    if (error instanceof CodecError && error.code === "VALUE_UNSUPPORTED") throw error;
    this.#host.notStored?.(key, "the store failed");
    this.#host.report(toError(error));
    return "unknown";
  }

  /** Reported once: a mistake in the code would repeat with every load. */
  #reportUndeclaredTags(key: string): void {
    if (this.#hasReportedTags) return;
    this.#hasReportedTags = true;
    this.#host.report(
      new ConfigError(
        "ARGUMENT_INVALID",
        `load must declare the context it calls setTags on, got a function without parameters for ${describeArrival(key)}`,
        {
          operation: "getOrSet",
          hint: "Write `(context) => ...`, not `(...args) => ...` or a parameter with a default: what such a load returns is not stored.",
        },
      ),
    );
  }

  /** Reads the store again, so that a value invalidated since the load began is not returned. */
  #find(key: string): MaybePromise<StoreLookup> {
    try {
      const found = this.#host.namespace().find(key);
      return isPromise(found) ? this.#found(found) : { found, failed: false };
    } catch (error) {
      return this.#notFound(error);
    }
  }

  async #found(found: Promise<Found | undefined>): Promise<StoreLookup> {
    try {
      return { found: await found, failed: false };
    } catch (error) {
      return this.#notFound(error);
    }
  }

  #notFound(error: unknown): StoreLookup {
    this.#host.report(toError(error));
    return FAILED;
  }

  /** A value that was not stored may be one that cannot be copied. */
  readonly #own = (value: unknown): unknown => {
    try {
      return this.#host.own(value);
    } catch {
      return value;
    }
  };
}

async function observed(loading: Promise<Loaded>, observer: LoadObserver): Promise<unknown> {
  let loaded: Loaded | undefined;
  try {
    loaded = await loading;
    return loaded.value;
  } finally {
    observer.ended(loaded);
  }
}

/** Whether a stale value is within a window; one of 0 allows none. */
const isWithin = ({ expiredForMs }: Found, windowMs: number): boolean =>
  windowMs > 0 && expiredForMs <= windowMs;

/** Whether a call waits for its load without a timeout, and never for a stale value. */
const isPlain = (request: ResolvedLoadOptions): boolean =>
  !request.force &&
  request.staleWhileRevalidateMs === 0 &&
  request.staleIfErrorMs === 0 &&
  request.softTimeoutMs === Number.POSITIVE_INFINITY &&
  request.hardTimeoutMs === Number.POSITIVE_INFINITY;

function whyNotStored(
  value: unknown,
  { skipped }: LoadDecisions,
  { signal, storeFailed }: Pick<Flight, "signal" | "storeFailed">,
): string {
  if (signal.aborted) return "the cache was disconnected";
  if (skipped) return "the load called skip()";
  if (value === undefined) return "the load returned undefined";
  return storeFailed ? "the store failed" : "another process is loading the same key";
}

const isPromise = <T>(answer: MaybePromise<T>): answer is Promise<T> => answer instanceof Promise;

/** A load that declares no parameter cannot call setTags. */
const namesTags = (load: { readonly length: number }): boolean => load.length > 0;

function ownKeyError(key: string): ConfigError {
  return new ConfigError(
    "ARGUMENT_INVALID",
    `load must not ask for the key it loads, got a getOrSet of ${describeArrival(key)} in its own load`,
    {
      operation: "getOrSet",
      hint: "It would wait for itself forever. Compute the value, or load another key.",
    },
  );
}
