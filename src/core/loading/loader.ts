// getOrSet: one load per key; a result that an invalidation has overtaken is handed out but never stored or joined.
import type { ChangeLog } from "../change-log.ts";
import type { Clock } from "../clock.ts";
import { Decisions, type ResolvedLoadOptions } from "../entry-options.ts";
import { CodecError, ConfigError, describeArrival } from "../errors.ts";
import { endOfTurn } from "../event-loop.ts";
import { toError } from "../events.ts";
import type { EntryOptions, Found, Namespace, Ticket } from "../namespace.ts";
import type { Load, LoadContext } from "../options.ts";
import { type Fate, suitsAfter } from "./late-tags.ts";
import { type Loaded, type Look, type Outcome, WaitingCall } from "./waiting-call.ts";

/** One load under way and the callers who wait for it. */
interface Flight {
  /** Begun although a fresh value may be stored, which others are given meanwhile. */
  readonly forced: boolean;
  readonly tags: readonly string[];
  /** The moment in the log of changes at which it began. */
  readonly since: number;
  readonly beganAt: number;
  readonly outcome: Promise<Outcome>;
  waiters: number;
  storeFailed: boolean;
  /** The permission to store it, once it is there. */
  ticket: Ticket | undefined;
  /** It was begun without one. */
  runsAlone: boolean;
}

export interface LoaderHost {
  readonly clock: Clock;
  /** The namespace as it is now: one that refuses while the cache is disconnected. */
  namespace(): Namespace;
  /** The value for one more caller, also while the cache is disconnected. */
  own(value: unknown): unknown;
  /** Aborts when the cache disconnects. */
  signal(): AbortSignal;
  /** Told once for every load whose result was stored. */
  stored(key: string, tags: readonly string[]): void;
  /** Told of failures that no caller sees: the store's, and those of loads nobody waits for. */
  report(error: Error): void;
}

/** A load without a ticket is not told of changes made elsewhere: it is joined for no longer than this. */
const UNTOLD_MS = 1_000;

const FAILED: Look = { found: undefined, failed: true };

type FlightState = Pick<Flight, "storeFailed" | "ticket" | "runsAlone">;
type Flights = Map<string, Flight>;

/** Cache objects on one namespace have one log of changes, and with it their loads in common. */
const flightsOf = new WeakMap<ChangeLog, Flights>();

/** The load whose synchronous part is running right now: what it asks for, it asks for itself. */
let running: { readonly flights: Flights; readonly key: string } | undefined;

export class Loader {
  readonly #changes: ChangeLog;
  readonly #host: LoaderHost;
  readonly #flights: Flights;
  #hasToldOfTags = false;

  constructor(changes: ChangeLog, host: LoaderHost) {
    this.#changes = changes;
    this.#host = host;
    this.#flights = flightsOf.get(changes) ?? new Map();
    flightsOf.set(changes, this.#flights);
  }

  /** Whether a load of this key is under way: then there is no use in asking the store. */
  isLoading(key: string): boolean {
    return this.#flights.has(key);
  }

  /** `look` is what the store has just said, and `calledAt` when the call began, in the log of changes. */
  async load<T>(
    key: string,
    load: Load<T>,
    request: ResolvedLoadOptions,
    look?: Look,
    calledAt = this.#changes.now,
  ): Promise<Loaded> {
    if (running?.flights === this.#flights && running.key === key) throw ownKeyError(key);
    let first = look;
    // Whoever asks for a new load must not be given one that is already running.
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
        const verdict = loaded.suits && (await call.untilHard(loaded.suits(calledAt)));
        if (verdict === "too old" || verdict === "not told") {
          // Whatever it joins next began after it came, so there is no third time. A store that has failed is not asked again.
          if (verdict === "not told") first = FAILED;
          continue;
        }
        return flight.waiters > 1 ? { value: this.#own(loaded.value), source: loaded.source } : loaded;
      } catch (error) {
        const stale = await call.insteadOfError(flight);
        if (stale === undefined) throw error;
        this.#host.report(toError(error));
        return stale;
      } finally {
        flight.waiters--;
      }
    }
  }

  /** The flight of this key, or a new one when something it depends on has changed since it began. */
  #join<T>(key: string, load: Load<T>, request: ResolvedLoadOptions, first?: Look): Flight {
    const present = this.#flights.get(key);
    if (present !== undefined && !this.#isOvertaken(key, present)) return present;
    const since = this.#changes.begin(key);
    const state: FlightState = { storeFailed: false, ticket: undefined, runsAlone: false };
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

  /** From here on nobody joins it. */
  #close(key: string, flight: FlightState): void {
    if (this.#flights.get(key) === flight) this.#flights.delete(key);
  }

  /** Whether something it depends on has changed since it began, or may have without being told. */
  #isOvertaken(key: string, { tags, since, beganAt, runsAlone, ticket }: Flight): boolean {
    if (this.#changes.touched(key, tags, since)) return true;
    return runsAlone ? this.#host.clock.now() - beganAt >= UNTOLD_MS : ticket?.isTold?.() === false;
  }

  /** A store that fails is asked once, then the load runs without it. */
  async #fly<T>(
    key: string,
    load: Load<T>,
    request: ResolvedLoadOptions,
    since: number,
    first: Look | undefined,
    state: FlightState,
  ): Promise<Outcome> {
    const { lock, force, entry } = request;
    let stale = first?.found;
    if (first?.failed) state.storeFailed = true;
    else {
      try {
        const space = this.#host.namespace();
        if (first === undefined) stale = await space.find(key);
        if (stale?.fresh && !force) return { value: stale.value, source: "store" };
        const lateTags = namesTags(load);
        const admission = await space.admit(key, { entry, since, lock, force, lateTags, seen: stale });
        if (admission.found !== undefined) {
          return { value: admission.found.value, source: "store" };
        }
        state.ticket = admission.ticket;
      } catch (error) {
        state.storeFailed = true;
        this.#host.report(toError(error));
      }
    }
    state.runsAlone = state.ticket === undefined;
    // No store may have held it up: the calls of one turn still come before it begins, and share it.
    if (state.runsAlone) await endOfTurn();
    return this.#run(key, load, entry, stale, state);
  }

  async #run<T>(
    key: string,
    load: Load<T>,
    terms: EntryOptions,
    stale: Found | undefined,
    state: FlightState,
  ): Promise<Outcome> {
    const { ticket } = state;
    const decided = new Decisions(terms);
    const signal = this.#host.signal();
    const changes = this.#changes;
    const begunAt = changes.mark();
    try {
      const value = await this.#call(key, load, decided.context(stale?.value as T | undefined, signal));
      const { skipped, terms: final } = decided;
      const endedAt = changes.mark();
      let fate: Fate = "unwanted";
      if (ticket !== undefined && value !== undefined && !skipped && !signal.aborted) {
        fate = await this.#commit(key, ticket, value, final);
      } else ticket?.abandon();
      if (final.tags.length === terms.tags.length) return { value, source: "load" };
      if (ticket?.areCurrent !== undefined && !namesTags(load)) this.#tellOfTags(key);
      const isTouched = changes.tagsTouched(final.tags, begunAt);
      const report = (error: Error): void => this.#host.report(error);
      const ended = { tags: final.tags, begunAt, endedAt, fate, isTouched, ticket, signal, report };
      return { value, source: "load", suits: suitsAfter(ended) };
    } catch (error) {
      ticket?.abandon();
      // Whoever comes after its end gets a load of their own, not an error from before their call.
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

  async #commit(key: string, ticket: Ticket, value: unknown, terms: EntryOptions): Promise<Fate> {
    try {
      if (!(await ticket.commit(value, terms))) return "refused";
      this.#host.stored(key, terms.tags);
      return "stored";
    } catch (error) {
      if (error instanceof CodecError && error.code === "VALUE_UNSUPPORTED") throw error;
      this.#host.report(toError(error));
      return "unknown";
    }
  }

  /** Once: a mistake in the code would be told at every load. */
  #tellOfTags(key: string): void {
    if (this.#hasToldOfTags) return;
    this.#hasToldOfTags = true;
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

  /** What the store holds now: a value invalidated since the load began does not come back. */
  async #find(key: string): Promise<Look> {
    try {
      return { found: await this.#host.namespace().find(key), failed: false };
    } catch (error) {
      this.#host.report(toError(error));
      return { found: undefined, failed: true };
    }
  }

  /** A value that was not stored may be anything, also something that cannot be copied. */
  #own(value: unknown): unknown {
    try {
      return this.#host.own(value);
    } catch {
      return value;
    }
  }
}

/** A load that declares no parameter cannot name tags of its own. */
const namesTags = (load: { readonly length: number }): boolean => load.length > 0;

function ownKeyError(key: string): ConfigError {
  return new ConfigError(
    "ARGUMENT_INVALID",
    `load must not ask for the key it loads, got a getOrSet of ${describeArrival(key)} in its own load`,
    {
      operation: "getOrSet",
      hint: "It would wait for itself for ever. Compute the value, or load another key.",
    },
  );
}
