// getOrSet: a single flight per key; a result overtaken by an invalidation is returned but never stored or joined.
import type { ChangeLog } from "../change-log.ts";
import type { Clock } from "../clock.ts";
import { disconnectedError, disconnectedNamespace } from "../disconnected-namespace.ts";
import { LoadDecisions, type ResolvedLoadOptions } from "../entry-options.ts";
import { CodecError, ConfigError, describeArrival } from "../errors.ts";
import { endOfTurn } from "../event-loop.ts";
import { toError } from "../events.ts";
import type { Admission, EntryOptions, Found, MaybePromise, Namespace, Ticket } from "../namespace.ts";
import type { Load, LoadContext } from "../options.ts";
import { type CommitOutcome, newEnoughCheck } from "./late-tags.ts";
import { LoadLimit, LoadLimits, OVERDUE } from "./load-limit.ts";
import { LoadPauses } from "./load-pauses.ts";
import { type Loaded, type Outcome, type StoreLookup, WaitingCall } from "./waiting-call.ts";

/** An in-flight load and its waiting callers. */
interface Flight {
  /** Started although a fresh value may be stored, which other callers get meanwhile. */
  readonly forced: boolean;
  readonly tags: readonly string[];
  /** The moment in the change log at which it began. */
  readonly since: number;
  readonly beganAt: number;
  readonly outcome: Promise<Outcome>;
  waiters: number;
  storeFailed: boolean;
  /** The permission to store its result, once granted. */
  ticket: Ticket | undefined;
  /** The load was started without a ticket. */
  hasNoTicket: boolean;
  /** What the load got as the stale value. */
  stale: Found | undefined;
  /** Aborts when the cache that started it disconnects. */
  readonly signal: AbortSignal;
  /** Settles when it is decided whether to load. */
  admission: MaybePromise<Admission> | undefined;
  readonly limit: LoadLimit;
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
  /** Called with failures that no caller sees: of the store, and of loads nobody waits for. */
  report(error: Error): void;
}

/** A load without a ticket does not notice changes made by other processes: it can be joined for this long at most. */
const MAX_UNNOTIFIED_MS = 1_000;

const FAILED: StoreLookup = { found: undefined, failed: true };

type FlightState = Pick<
  Flight,
  "storeFailed" | "ticket" | "hasNoTicket" | "stale" | "signal" | "limit" | "admission"
>;
type Flights = Map<string, Flight>;

/** Cache objects on one namespace share its change log, and with it their flights. */
const flightsOf = new WeakMap<ChangeLog, Flights>();

/** The load whose synchronous part is running right now: a call made meanwhile comes from the load itself. */
let running: { readonly flights: Flights; readonly key: string } | undefined;

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
    this.#flights = flightsOf.get(changes) ?? new Map();
    flightsOf.set(changes, this.#flights);
  }

  /** Whether a load of this key is in flight: then reading the store first is pointless. */
  isLoading(key: string): boolean {
    return this.#flights.has(key);
  }

  /** `lookup`: what a read of the store has just returned; `calledAt`: when the call began, in the change log. */
  async load<T>(
    key: string,
    load: Load<T>,
    request: ResolvedLoadOptions,
    lookup?: StoreLookup,
    calledAt = this.#changes.now,
  ): Promise<Loaded> {
    if (running?.flights === this.#flights && running.key === key) throw ownKeyError(key);
    let first = lookup;
    // A forced load must not join one that is already running.
    if (request.force) this.#changes.key(key);
    else if (
      request.staleWhileRevalidateMs > 0 ||
      this.#flights.get(key)?.forced === true ||
      this.#pauses?.has(key) === true
    ) {
      const windowMs = request.staleWhileRevalidateMs;
      first ??= await this.#find(key);
      const { found } = first;
      if (found?.fresh) return { value: found.value, source: "store" };
      if (found !== undefined) {
        const isRevalidated = isWithin(found, windowMs);
        const isPaused =
          (isRevalidated || isWithin(found, request.staleIfErrorMs)) &&
          this.#pauses?.covers(key, found) === true;
        if (isRevalidated && !isPaused) this.#join(key, load, request, first);
        if (isRevalidated || isPaused) return { value: found.value, source: "stale" };
      }
    }
    const call = new WaitingCall(this.#host.clock, request, () => this.#find(key));
    for (;;) {
      const present = this.#flights.get(key);
      const joined = present === undefined ? undefined : this.#joinable(key, present);
      const flight = joined ?? this.#start(key, load, request, first);
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

  #join<T>(key: string, load: Load<T>, request: ResolvedLoadOptions, first?: StoreLookup): Flight {
    const present = this.#flights.get(key);
    const joined = present === undefined ? undefined : this.#joinable(key, present);
    return joined ?? this.#start(key, load, request, first);
  }

  /** The flight of this key, unless something it depends on has changed since it began, or it takes too long. */
  #joinable(key: string, present: Flight): Flight | undefined {
    if (this.#isOvertaken(key, present)) return undefined;
    if (!present.limit.isExceeded) return present;
    // The result of the next load is the newer one.
    this.#changes.key(key);
    return undefined;
  }

  #start<T>(key: string, load: Load<T>, request: ResolvedLoadOptions, first?: StoreLookup): Flight {
    const since = this.#changes.begin(key);
    const state: FlightState = {
      storeFailed: false,
      ticket: undefined,
      hasNoTicket: false,
      stale: undefined,
      signal: this.#host.signal(),
      limit: new LoadLimit(),
      admission: undefined,
    };
    const outcome = this.#fly(key, load, request, since, first, state).finally(() => {
      this.#changes.end(key);
      this.#close(key, flight);
    });
    const flight: Flight = Object.assign(state, {
      forced: request.force,
      tags: request.entry.tags,
      since,
      beganAt: this.#host.clock.now(),
      outcome,
      waiters: 0,
    });
    this.#flights.set(key, flight);
    outcome.catch((error: unknown) => {
      if (flight.waiters === 0) this.#host.report(toError(error));
    });
    return flight;
  }

  /** From now on no caller joins it. */
  #close(key: string, flight: FlightState): void {
    if (this.#flights.get(key) === flight) this.#flights.delete(key);
  }

  /** Whether something it depends on has changed since it began, or may have changed unnoticed. */
  #isOvertaken(key: string, { tags, since, beganAt, hasNoTicket, ticket }: Flight): boolean {
    if (this.#changes.touched(key, tags, since)) return true;
    return hasNoTicket
      ? this.#host.clock.now() - beganAt >= MAX_UNNOTIFIED_MS
      : ticket?.noticesChanges?.() === false;
  }

  /** A failing store is called once, then the load runs without it. */
  async #fly<T>(
    key: string,
    load: Load<T>,
    request: ResolvedLoadOptions,
    since: number,
    first: StoreLookup | undefined,
    state: FlightState,
  ): Promise<Outcome> {
    const { lock, force, entry } = request;
    if (first?.failed) state.storeFailed = true;
    else {
      try {
        const namespace = this.#host.namespace();
        const seen = first === undefined ? await namespace.find(key) : first.found;
        if (seen?.fresh && !force) return { value: seen.value, source: "store" };
        const { signal } = state;
        if (signal.aborted) throw disconnectedError();
        state.admission = namespace.admit(key, {
          entry,
          since,
          lock,
          force,
          lateTags: namesTags(load),
          seen,
          limitMs: this.#host.loadLimitMs,
          signal,
        });
        const admission = await state.admission;
        if (admission.found !== undefined) {
          return { value: admission.found.value, source: "store" };
        }
        state.ticket = admission.ticket;
        // Without an admission nothing says that a value read earlier was not invalidated since.
        state.stale = admission.stale;
      } catch (error) {
        state.storeFailed = true;
        this.#host.report(toError(error));
      }
    }
    state.hasNoTicket = state.ticket === undefined;
    // Without a wait for the store, other calls of this turn still have to come before the load starts, to share it.
    if (state.hasNoTicket) await endOfTurn();
    this.#limits.begin(state.limit);
    try {
      const outcome = await this.#run(key, load, entry, state);
      this.#pauses?.end(key);
      return outcome;
    } catch (error) {
      const windowMs = Math.max(request.staleIfErrorMs, request.staleWhileRevalidateMs);
      if (state.stale?.fresh === false && isWithin(state.stale, windowMs)) {
        this.#pauses ??= new LoadPauses(this.#host.clock);
        this.#pauses.failed(key, state.stale);
      }
      throw error;
    } finally {
      this.#limits.end(state.limit);
    }
  }

  async #run<T>(key: string, load: Load<T>, options: EntryOptions, state: FlightState): Promise<Outcome> {
    const { ticket, stale, signal } = state;
    const decided = new LoadDecisions(options);
    const changes = this.#changes;
    const begunAt = changes.mark();
    try {
      const loaded = await this.#call(key, load, decided.context(stale?.value as T | undefined, signal));
      const value = this.#host.freezes ? this.#own(loaded) : loaded;
      const { skipped, options: final } = decided;
      const endedAt = changes.mark();
      let commit: CommitOutcome = "skipped";
      if (ticket !== undefined && value !== undefined && !skipped && !signal.aborted) {
        commit = await this.#commit(key, ticket, value, final);
      } else void ticket?.abandon();
      if (final.tags.length === options.tags.length) return { value, source: "load" };
      if (ticket?.areCurrent !== undefined && !namesTags(load)) this.#reportUndeclaredTags(key);
      const isTouched = changes.tagsTouched(final.tags, begunAt);
      const report = (error: Error): void => this.#host.report(error);
      const ended = { tags: final.tags, begunAt, endedAt, commit, isTouched, ticket, signal, report };
      return { value, source: "load", isNewEnough: newEnoughCheck(ended) };
    } catch (error) {
      void ticket?.abandon();
      // A later caller must start a new load, not get an error from before its call.
      this.#close(key, state);
      throw error;
    }
  }

  #call<T>(key: string, load: Load<T>, context: LoadContext<T>): T | Promise<T> {
    const outer = running;
    this.#host.loading?.();
    running = { flights: this.#flights, key };
    try {
      return load(context);
    } finally {
      running = outer;
    }
  }

  async #commit(key: string, ticket: Ticket, value: unknown, options: EntryOptions): Promise<CommitOutcome> {
    try {
      if (!(await ticket.commit(value, options))) return "refused";
      this.#host.stored(key, options.tags);
      return "stored";
    } catch (error) {
      if (error instanceof CodecError && error.code === "VALUE_UNSUPPORTED") throw error;
      this.#host.report(toError(error));
      return "unknown";
    }
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
  async #find(key: string): Promise<StoreLookup> {
    try {
      return { found: await this.#host.namespace().find(key), failed: false };
    } catch (error) {
      this.#host.report(toError(error));
      return { found: undefined, failed: true };
    }
  }

  /** A value that was not stored may be one that cannot be copied. */
  #own(value: unknown): unknown {
    try {
      return this.#host.own(value);
    } catch {
      return value;
    }
  }
}

/** Whether a stale value is within a window; one of 0 allows none. */
const isWithin = ({ expiredForMs }: Found, windowMs: number): boolean =>
  windowMs > 0 && expiredForMs <= windowMs;

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
