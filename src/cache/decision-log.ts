// `DEBUG=xcache:cache`: a line about each decision of a cache and its reason. Names are shown, values never.
import { type DebugLog, quotedName } from "../core/debug.ts";
import { XCacheError } from "../core/errors.ts";
import type { Emitter } from "../core/events.ts";
import { AsyncLocalStorage } from "../core/lazy-builtin.ts";
import type { Loaded } from "../core/loading/waiting-call.ts";
import type { KeyExplanation } from "../core/stats.ts";
import type { Decisions } from "../metrics/recording/telemetry.ts";

type Explain = (key: string) => Promise<KeyExplanation>;

/** One call of getOrSet, with what came of it. */
interface Call {
  loaded?: Loaded;
}

export class DecisionLog implements Decisions {
  readonly #write: DebugLog;
  readonly #explain: Explain;
  readonly #calls = new AsyncLocalStorage<Call>();

  /** `explain` looks at a key before the call that it explains. */
  constructor(write: DebugLog, events: Emitter, explain: Explain) {
    this.#write = write;
    this.#explain = explain;
    events.add("set", ({ key, tags }) => write(`stored ${quotedName(key)}${tagText(tags)}`));
    events.add("delete", ({ key }) => write(`deleted ${quotedName(key)}`));
    events.add("evict", ({ key }) => write(`evicted ${quotedName(key)}: the store is full`));
    events.add("invalidate", ({ tags, pattern }) => write(invalidationText(tags, pattern)));
    events.add("state", ({ what, state }) => write(`${what.replace("_", " ")}: ${state}`));
  }

  /** Runs one operation. */
  around<T>(operation: string, key: string | undefined, work: () => Promise<T>): Promise<T> {
    if (typeof key !== "string" || operation === "set") return work();
    const explained = this.#explain(key).catch(() => undefined);
    const call: Call = {};
    // Written later: a store that does not answer must not delay the caller.
    const ended = (outcome: string): Promise<void> =>
      explained.then((explanation) =>
        this.#write(`${operation} ${quotedName(key)}: ${outcome}${reasonFor(outcome, explanation)}`),
      );
    const result = this.#calls.run(call, work);
    result.then(
      (value) => ended(operation === "get" ? (value === undefined ? "miss" : "hit") : outcomeOf(call)),
      (error: unknown) => ended(`failed with ${nameOf(error)}`),
    );
    return result;
  }

  /** What came of the call of getOrSet that this is part of. */
  loaded(loaded: Loaded | undefined): void {
    const call = this.#calls.getStore();
    if (call !== undefined && loaded !== undefined) call.loaded = loaded;
  }

  notStored(key: string, reason: string): void {
    this.#write(`not stored ${quotedName(key)}: ${reason}`);
  }

  /** Not its message, which may hold anything. */
  failed(operation: string, error: Error): void {
    this.#write(`${operation} failed with ${nameOf(error)}`);
  }
}

/** On a shared store, another call may change the entry before it is explained: such a reason would contradict the outcome. */
function reasonFor(outcome: string, explanation: KeyExplanation | undefined): string {
  if (explanation === undefined) return "";
  const { state, reason } = explanation;
  const isContrary = outcome === "hit" ? state !== "fresh" : outcome !== "joined a load" && state === "fresh";
  return isContrary ? "" : ` (${reason})`;
}

function outcomeOf({ loaded }: Call): string {
  if (loaded === undefined || loaded.source === "store") return "hit";
  if (loaded.source === "stale") return "stale value served";
  return loaded.coalesced === true ? "joined a load" : "loaded";
}

function nameOf(error: unknown): string {
  if (error instanceof XCacheError) return `${error.name} (${error.code})`;
  return error instanceof Error ? quotedName(error.name) : typeof error;
}

const tagText = (tags: readonly string[]): string =>
  tags.length === 0 ? "" : `; tags: ${tags.map(quotedName).join(", ")}`;

function invalidationText(tags: readonly string[] | undefined, pattern: string | undefined): string {
  if (tags !== undefined) return `invalidated the tags ${tags.map(quotedName).join(", ")}`;
  return pattern === undefined ? "cleared the namespace" : `invalidated the pattern ${quotedName(pattern)}`;
}
