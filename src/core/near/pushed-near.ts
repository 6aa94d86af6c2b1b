// The near tier of one namespace over a store with push: decoded values, served while the push channel is trusted.

import type { PushChannel } from "../backend.ts";
import type { Clock } from "../clock.ts";
import { payloadLength } from "../codec.ts";
import type { Handing } from "../frozen.ts";
import { InflightReads, type WatchedRead } from "../invalidation/inflight-reads.ts";
import type { NamespaceStamps } from "../invalidation/namespace-stamps.ts";
import type { OutboxBackend } from "../invalidation/outbox-backend.ts";
import type { HeldStamp, StampChecks, StampTrust } from "../invalidation/stamps.ts";
import type { Entry } from "../record.ts";

/** Storage of a near tier; see backends/memory/near-tier.ts. */
export interface NearPage {
  /** The value itself, if it is fresh and its stamps are live. */
  peek(key: string): unknown;
  /** Whether `peek` would return a value; not a use. */
  holds(key: string): boolean;
  /** Whether it is full and its admission policy would not keep this key. */
  declines(key: string): boolean;
  /** Returns whether the value was kept. `expires` is in local time; `bytes` is the approximate size of the value. */
  keep(key: string, value: unknown, expires: number, stamps: KeptStamps | undefined, bytes: number): boolean;
  drop(key: string): void;
  keys(): Iterable<string>;
  clear(): void;
}

/** What a cached value depends on besides its expiry. */
export interface KeptStamps {
  isLive(): boolean;
  /** Called on every hit. */
  used?(): void;
}

/** Its limits apply to all its pages together. */
export interface NearTier {
  /** What callers get of the objects it keeps. */
  readonly values: Handing;
  page(): NearPage;
  /** Resumes what `stop` has stopped. */
  start(): void;
  /** Stops the timer of its upkeep. */
  stop(): void;
}

/** The stamps of a near entry's tags. */
class NearStamps implements KeptStamps {
  readonly #stamps: readonly HeldStamp[];

  constructor(stamps: readonly HeldStamp[]) {
    this.#stamps = stamps;
  }

  isLive(): boolean {
    return this.#stamps.every((stamp) => stamp.isPresent);
  }

  used(): void {
    for (const stamp of this.#stamps) stamp.isUsed = true;
  }
}

/** A push channel with a cheap trust check. */
type TrustedChannel = PushChannel & Required<Pick<PushChannel, "isTrusted">>;

/** Whether a near tier can be kept coherent over this store. */
export function pushesChanges(push: PushChannel | undefined): push is TrustedChannel {
  return push?.isTrusted !== undefined;
}

/** What a near tier needs of the namespace's stamps. */
export type KnownStamps = Pick<NamespaceStamps, "heldNamespaceStamps" | "heldTagStamps" | "stampsOf">;

/** The near tier of a namespace, whichever way it is kept coherent. */
export type Near = Pick<
  PushedNear,
  "peek" | "holds" | "begin" | "end" | "keep" | "drop" | "dropMatching" | "clear"
>;

export interface PushedNearOptions {
  readonly page: NearPage;
  readonly push: TrustedChannel;
  readonly backend: OutboxBackend;
  readonly clock: Clock;
  readonly checks: StampChecks;
}

/** Hits served per trust check within one event-loop turn, when they come in a burst. */
const HITS_PER_CHECK = 15;
/** With more time between two checks, every hit is checked: no push arrives within a turn, however long it runs. */
const BURST_MS = 5;

export class PushedNear implements StampTrust {
  readonly #page: NearPage;
  readonly #push: TrustedChannel;
  readonly #backend: OutboxBackend;
  readonly #clock: Clock;
  readonly #reads: InflightReads;
  /** The namespace stamps, root first, that everything in the page depends on. */
  #namespaceStamps: readonly HeldStamp[] = [];
  readonly #checks: StampChecks;
  /** Hits that may be served before stamps and push channel are checked again; 0 after `revoke`. */
  #hitsLeft = 0;
  #checkedAt = 0;

  constructor({ page, push, backend, clock, checks }: PushedNearOptions) {
    this.#page = page;
    this.#push = push;
    this.#backend = backend;
    this.#clock = clock;
    this.#reads = new InflightReads(push);
    this.#checks = checks;
  }

  peek(key: string): unknown {
    return --this.#hitsLeft >= 0 || this.#mayServe() ? this.#page.peek(key) : undefined;
  }

  holds(key: string): boolean {
    return this.#mayServe() && this.#page.holds(key);
  }

  revoke(): void {
    this.#hitsLeft = 0;
  }

  /** Whether what is in the page may be served. */
  #mayServe(): boolean {
    this.#hitsLeft = 0;
    for (const stamp of this.#namespaceStamps) {
      if (!stamp.isPresent) return false;
      stamp.isUsed = true;
    }
    const now = this.#clock.now();
    if (!this.#push.isTrusted(now)) return false;
    this.#checks.trust(this);
    if (now - this.#checkedAt < BURST_MS) this.#hitsLeft = HITS_PER_CHECK;
    this.#checkedAt = now;
    return true;
  }

  /** A read begins; undefined if its value would not be cached and need not be watched. */
  begin(key: string, spelled: string): WatchedRead | undefined {
    return this.#page.declines(key) ? undefined : this.#reads.begin(spelled);
  }

  /** The read ended without a value to cache. */
  end(read: WatchedRead): void {
    this.#reads.end(read);
  }

  /** Caches a value if nothing it depends on can have changed unnoticed. Returns whether it did. */
  keep(key: string, value: unknown, entry: Entry, read: WatchedRead, known: KnownStamps): boolean {
    if (!this.#reads.end(read)) return false;
    const namespaceStamps = known.heldNamespaceStamps();
    const tags = known.heldTagStamps(entry);
    // A stamp without a valid local copy is undefined.
    if (!allPresent(namespaceStamps) || !allPresent(tags)) return false;
    if (namespaceStamps !== this.#namespaceStamps && !sameStamps(namespaceStamps, this.#namespaceStamps))
      this.#page.clear();
    this.#namespaceStamps = namespaceStamps;
    const expires = entry.expires - this.#backend.aheadMs();
    if (expires <= this.#clock.coarse()) return false;
    const stamps = tags.length === 0 ? undefined : new NearStamps(tags);
    return this.#page.keep(key, value, expires, stamps, payloadLength(entry.payload));
  }

  /** The entry under a key may have changed. */
  drop(key: string, spelled: string): void {
    this.#reads.invalidate(spelled);
    this.#page.drop(key);
  }

  dropMatching(matches: (key: string) => boolean): void {
    this.#reads.invalidateAll();
    for (const key of this.#page.keys()) if (matches(key)) this.#page.drop(key);
  }

  clear(): void {
    this.#reads.invalidateAll();
    this.#page.clear();
  }
}

function allPresent(stamps: readonly (HeldStamp | undefined)[]): stamps is readonly HeldStamp[] {
  return stamps.every((stamp) => stamp?.isPresent === true);
}

function sameStamps(some: readonly HeldStamp[], others: readonly HeldStamp[]): boolean {
  return some.length === others.length && some.every((stamp, at) => stamp === others[at]);
}
