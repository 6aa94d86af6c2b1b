// A small typed emitter: no cost without listeners, and a listener that throws or rejects affects nothing else.
import { describeArrival } from "./errors.ts";

/** The payload of each event. Keys are the user's own, without prefix. */
export interface CacheEvents {
  hit: { readonly key: string };
  miss: { readonly key: string };
  set: { readonly key: string; readonly tags: readonly string[] };
  /** Emitted for every key passed to delete(), present or not. */
  delete: { readonly key: string };
  invalidate: { readonly tags?: readonly string[]; readonly pattern?: string; readonly all?: true };
  evict: { readonly key: string };
  /** A failure that no caller sees: of a background load, a fail-open store, a listener. */
  error: { readonly error: Error; readonly operation: string };
  /** The circuit breaker or the connection changed state. */
  state: { readonly what: "circuit_breaker" | "connection"; readonly state: string };
}

export type CacheEvent = keyof CacheEvents;
export type Listener<E extends CacheEvent> = (event: CacheEvents[E]) => void;

export const CACHE_EVENTS: readonly CacheEvent[] = [
  "hit",
  "miss",
  "set",
  "delete",
  "invalidate",
  "evict",
  "error",
  "state",
];

type Listeners = { [E in CacheEvent]: readonly Listener<E>[] | undefined };

export class Emitter {
  /** Read it before building an event: `if (events.on.hit) events.emit("hit", ...)`. */
  readonly on: Listeners = {
    hit: undefined,
    miss: undefined,
    set: undefined,
    delete: undefined,
    invalidate: undefined,
    evict: undefined,
    error: undefined,
    state: undefined,
  };

  add<E extends CacheEvent>(event: E, listener: Listener<E>): void {
    const present: readonly Listener<E>[] = this.on[event] ?? [];
    (this.on as Record<CacheEvent, unknown>)[event] = [...present, listener];
  }

  remove<E extends CacheEvent>(event: E, listener: Listener<E>): void {
    const present: readonly Listener<E>[] = this.on[event] ?? [];
    const at = present.lastIndexOf(listener);
    if (at < 0) return;
    const left = present.toSpliced(at, 1);
    (this.on as Record<CacheEvent, unknown>)[event] = left.length > 0 ? left : undefined;
  }

  emit<E extends CacheEvent>(event: E, details: CacheEvents[E]): void {
    const listeners: readonly Listener<E>[] | undefined = this.on[event];
    if (listeners === undefined) return;
    for (const listener of listeners) {
      try {
        const result: unknown = listener(details);
        if (result instanceof Promise) result.catch((error: unknown) => this.#listenerFailed(event, error));
      } catch (error) {
        this.#listenerFailed(event, error);
      }
    }
  }

  /** The failure of an error listener is dropped: there is no one left to report it to. */
  #listenerFailed(event: CacheEvent, error: unknown): void {
    if (event !== "error") this.emit("error", { error: toError(error), operation: `on(${event})` });
  }
}

export function toError(thrown: unknown): Error {
  if (thrown instanceof Error) return thrown;
  return new Error(typeof thrown === "string" ? thrown : describeArrival(thrown), { cause: thrown });
}
