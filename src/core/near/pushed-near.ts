// The in-process tier of one namespace: values decoded before, served while the store would have told of any change.
import type { PushChannel } from "../backend.ts";
import type { Clock } from "../clock.ts";
import { payloadLength } from "../codec.ts";
import { InflightReads, type WatchedRead } from "../invalidation/inflight-reads.ts";
import type { NamespaceStamps } from "../invalidation/namespace-stamps.ts";
import type { OutboxBackend } from "../invalidation/outbox-backend.ts";
import type { HeldStamp, StampChecks, StampTrust } from "../invalidation/stamps.ts";
import type { Entry } from "../record.ts";

/** Where a near tier keeps its entries; see backends/near.ts. */
export interface NearPage {
  /** The value itself, if it is fresh and its seal is live. */
  peek(key: string): unknown;
  /** Whether it is full, and better off without a value under this key that is asked for now. */
  declines(key: string): boolean;
  /** Returns whether it is kept. `expires` is a time of the local clock; `bytes` is what the value takes, about. */
  keep(key: string, value: unknown, expires: number, seal: KeptStamps | undefined, bytes: number): boolean;
  drop(key: string): void;
  keys(): Iterable<string>;
  clear(): void;
}

/** What a kept value depends on besides its time. */
export interface KeptStamps {
  isLive(): boolean;
  /** Told of every hit that relies on it. */
  used?(): void;
}

/** Bounded over all its pages together. */
export interface NearTier {
  /** Hand out the kept object itself instead of a copy. */
  readonly sharesValues: boolean;
  page(): NearPage;
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

/** A push channel that says cheaply whether it can be trusted. */
type TrustedChannel = PushChannel & Required<Pick<PushChannel, "isTrusted">>;

/** Whether a near tier can be kept coherent over this store. */
export function tellsOfChanges(push: PushChannel | undefined): push is TrustedChannel {
  return push?.isTrusted !== undefined;
}

/** What a near tier asks of the namespace's seals. */
export type KnownStamps = Pick<NamespaceStamps, "heldLineage" | "heldTags" | "stampsOf">;

/** The in-process tier of a namespace, by whatever means it is kept coherent. */
export type Near = Pick<PushedNear, "peek" | "begin" | "end" | "keep" | "drop" | "dropMatching" | "clear">;

export interface PushedNearOptions {
  readonly page: NearPage;
  readonly push: TrustedChannel;
  readonly backend: OutboxBackend;
  readonly clock: Clock;
  readonly checks: StampChecks;
}

/** So many hits within one turn of the event loop are served on one look at the push channel, where they come quickly. */
const HITS_PER_LOOK = 15;
/** Where more time passes from one look to the next, every hit is looked at: within a turn no push arrives, however long it is. */
const QUICK_MS = 5;

export class PushedNear implements StampTrust {
  readonly #page: NearPage;
  readonly #push: TrustedChannel;
  readonly #backend: OutboxBackend;
  readonly #clock: Clock;
  readonly #reads: InflightReads;
  /** The namespace's stamps, its ancestors' first, that everything in the page is sealed with. */
  #lineage: readonly HeldStamp[] = [];
  readonly #checks: StampChecks;
  /** So many hits are served before it looks at the stamps and the push channel again; none when it was told to doubt. */
  #hitsLeft = 0;
  #lookedAt = 0;

  constructor({ page, push, backend, clock, checks }: PushedNearOptions) {
    this.#page = page;
    this.#push = push;
    this.#backend = backend;
    this.#clock = clock;
    this.#reads = new InflightReads(push);
    this.#checks = checks;
  }

  peek(key: string): unknown {
    return --this.#hitsLeft >= 0 || this.#isGood() ? this.#page.peek(key) : undefined;
  }

  revoke(): void {
    this.#hitsLeft = 0;
  }

  /** Whether what is in the page may be served. */
  #isGood(): boolean {
    this.#hitsLeft = 0;
    for (const stamp of this.#lineage) {
      if (!stamp.isPresent) return false;
      stamp.isUsed = true;
    }
    const now = this.#clock.now();
    if (!this.#push.isTrusted(now)) return false;
    this.#checks.assure(this);
    if (now - this.#lookedAt < QUICK_MS) this.#hitsLeft = HITS_PER_LOOK;
    this.#lookedAt = now;
    return true;
  }

  /** A read begins; undefined where its value would not be kept, and need not be watched. */
  begin(key: string, spelled: string): WatchedRead | undefined {
    return this.#page.declines(key) ? undefined : this.#reads.begin(spelled);
  }

  /** The read is over without a value to keep. */
  end(read: WatchedRead): void {
    this.#reads.end(read);
  }

  /** Keeps a value if nothing it depends on can have changed unnoticed. Returns whether it is kept. */
  keep(key: string, value: unknown, entry: Entry, read: WatchedRead, seals: KnownStamps): boolean {
    if (!this.#reads.end(read)) return false;
    const lineage = seals.heldLineage();
    const tags = seals.heldTags(entry);
    // A stamp that is not at hand is undefined.
    if (!allAtHand(lineage) || !allAtHand(tags)) return false;
    if (lineage !== this.#lineage && !sameStamps(lineage, this.#lineage)) this.#page.clear();
    this.#lineage = lineage;
    const expires = entry.expires - this.#backend.aheadMs();
    if (expires <= this.#clock.coarse()) return false;
    const seal = tags.length === 0 ? undefined : new NearStamps(tags);
    return this.#page.keep(key, value, expires, seal, payloadLength(entry.payload));
  }

  /** The entry under a key may have changed. */
  drop(key: string, spelled: string): void {
    this.#reads.spoil(spelled);
    this.#page.drop(key);
  }

  dropMatching(matches: (key: string) => boolean): void {
    this.#reads.spoilAll();
    for (const key of this.#page.keys()) if (matches(key)) this.#page.drop(key);
  }

  clear(): void {
    this.#reads.spoilAll();
    this.#page.clear();
  }
}

function allAtHand(stamps: readonly (HeldStamp | undefined)[]): stamps is readonly HeldStamp[] {
  return stamps.every((stamp) => stamp?.isPresent === true);
}

function sameStamps(some: readonly HeldStamp[], others: readonly HeldStamp[]): boolean {
  return some.length === others.length && some.every((stamp, at) => stamp === others[at]);
}
