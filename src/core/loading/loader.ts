// getOrSet: a single flight per key; a result overtaken by an invalidation is returned but never stored or joined.
import type { ChangeLog } from "../change-log.ts";
import type { Clock } from "../clock.ts";
import { LoadDecisions, type ResolvedLoadOptions } from "../entry-options.ts";
import { CodecError, ConfigError, describeArrival } from "../errors.ts";
import { endOfTurn } from "../event-loop.ts";
import { toError } from "../events.ts";
import type { EntryOptions, Found, Namespace, Ticket } from "../namespace.ts";
import type { Load, LoadContext } from "../options.ts";
import { type CommitOutcome, newEnoughCheck } from "./late-tags.ts";
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
}

export interface LoaderHost {
  readonly clock: Clock;
  /** The current namespace: one that rejects every call while the cache is disconnected. */
  namespace(): Namespace;
  /** The value for another caller, also while the cache is disconnected. */
  own(value: unknown): unknown;
  /** Aborts when the cache disconnects. */
  signal(): AbortSignal;
  /** Called once per load whose result was stored. */
  stored(key: string, tags: readonly string[]): void;
  /** Called with failures that no caller sees: of the store, and of loads nobody waits for. */
  report(error: Error): void;
}

/** A load without a ticket does not notice changes made by other processes: it can be joined for this long at most. */
const MAX_UNNOTIFIED_MS = 1_000;

const FAILED: StoreLookup = { found: undefined, failed: true };

type FlightState = Pick<Flight, "storeFailed" | "ticket" | "hasNoTicket">;
type Flights = Map<string, Flight>;

/** Cache objects on one namespace share its change log, and with it their flights. */
const flightsOf = new WeakMap<ChangeLog, Flights>();

/** The load whose synchronous part is running right now: a call made meanwhile comes from the load itself. */
let running: { readonly flights: Flights; readonly key: string } | undefined;

export class Loader {
  readonly #changes: ChangeLog;
  readonly #host: LoaderHost;
  readonly #flights: Flights;
  #hasReportedTags = false;

  constructor(changes: ChangeLog, host: LoaderHost) {
    this.#changes = changes;
    this.#host = host;
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
    else if (request.staleWhileRevalidateMs > 0 || this.#flights.get(key)?.forced === true) {
      const windowMs = request.staleWhileRevalidateMs;
      first ??= await this.#find(key);
      const { found } = first;
      if (found?.fresh) return { value: found.value, source: "store" };
      if (found !== undefined && windowMs > 0 && found.expiredForMs <= windowMs) {
        this.#join(key, load, request, first);
        return { value: found.value, source: "stale" };
      }
    }
    const call = new WaitingCall(this.#host.clock, request, () => this.#find(key));
    for (;;) {
      const flight = this.#join(key, load, request, first);
      first = undefined;
      flight.waiters++;
      try {
        const loaded = await call.outcomeOf(flight);
        const verdict = loaded.isNewEnough && (await call.untilHard(loaded.isNewEnough(calledAt)));
        if (verdict === "too old" || verdict === "unknown") {
          // The next load begins after this call, so there is no third attempt. A store that failed is not asked again.
          if (verdict === "unknown") first = FAILED;
          continue;
        }
        return flight.waiters > 1 ? { value: this.#own(loaded.value), source: loaded.source } : loaded;
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

  /** The flight of this key, or a new one if something it depends on has changed since it began. */
  #join<T>(key: string, load: Load<T>, request: ResolvedLoadOptions, first?: StoreLookup): Flight {
    const present = this.#flights.get(key);
    if (present !== undefined && !this.#isOvertaken(key, present)) return present;
    const since = this.#changes.begin(key);
    const state: FlightState = { storeFailed: false, ticket: undefined, hasNoTicket: false };
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
    let stale = first?.found;
    if (first?.failed) state.storeFailed = true;
    else {
      try {
        const namespace = this.#host.namespace();
        if (first === undefined) stale = await namespace.find(key);
        if (stale?.fresh && !force) return { value: stale.value, source: "store" };
        const lateTags = namesTags(load);
        const admission = await namespace.admit(key, { entry, since, lock, force, lateTags, seen: stale });
        if (admission.found !== undefined) {
          return { value: admission.found.value, source: "store" };
        }
        state.ticket = admission.ticket;
      } catch (error) {
        state.storeFailed = true;
        this.#host.report(toError(error));
      }
    }
    state.hasNoTicket = state.ticket === undefined;
    // Without a wait for the store, other calls of this turn still have to come before the load starts, to share it.
    if (state.hasNoTicket) await endOfTurn();
    return this.#run(key, load, entry, stale, state);
  }

  async #run<T>(
    key: string,
    load: Load<T>,
    options: EntryOptions,
    stale: Found | undefined,
    state: FlightState,
  ): Promise<Outcome> {
    const { ticket } = state;
    const decided = new LoadDecisions(options);
    const signal = this.#host.signal();
    const changes = this.#changes;
    const begunAt = changes.mark();
    try {
      const value = await this.#call(key, load, decided.context(stale?.value as T | undefined, signal));
      const { skipped, options: final } = decided;
      const endedAt = changes.mark();
      let commit: CommitOutcome = "skipped";
      if (ticket !== undefined && value !== undefined && !skipped && !signal.aborted) {
        commit = await this.#commit(key, ticket, value, final);
      } else ticket?.abandon();
      if (final.tags.length === options.tags.length) return { value, source: "load" };
      if (ticket?.areCurrent !== undefined && !namesTags(load)) this.#reportUndeclaredTags(key);
      const isTouched = changes.tagsTouched(final.tags, begunAt);
      const report = (error: Error): void => this.#host.report(error);
      const ended = { tags: final.tags, begunAt, endedAt, commit, isTouched, ticket, signal, report };
      return { value, source: "load", isNewEnough: newEnoughCheck(ended) };
    } catch (error) {
      ticket?.abandon();
      // A later caller must start a new load, not get an error from before its call.
      this.#close(key, state);
      throw error;
    }
  }

  #call<T>(key: string, load: Load<T>, context: LoadContext<T>): T | Promise<T> {
    const outer = running;
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
