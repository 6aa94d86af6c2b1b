// The in-process tier over a store that tells nothing of changes but answers at once: what is kept near is a decoded value,
// and at every hit the store is asked whether the entry and its stamps are still those it was made of.
import type { Clock } from "../clock.ts";
import { payloadLength } from "../codec.ts";
import type { WatchedRead } from "../invalidation/inflight-reads.ts";
import type { OutboxBackend } from "../invalidation/outbox-backend.ts";
import type { Entry, Token } from "../record.ts";
import type { KeptStamps, KnownStamps, Near, NearPage } from "./pushed-near.ts";

type VersionNow = NonNullable<OutboxBackend["versionNow"]>;

/** The entry a value was decoded from, and the stamps it is sealed with. */
class ComparedStamps implements KeptStamps {
  readonly #versionNow: VersionNow;
  readonly #key: string;
  readonly #version: Token;
  readonly #stamps: readonly (readonly [string, Token])[];

  constructor(
    versionNow: VersionNow,
    { key, version }: Entry,
    stamps: readonly (readonly [string, Token])[],
  ) {
    this.#versionNow = versionNow;
    this.#key = key;
    this.#version = version;
    this.#stamps = stamps;
  }

  isLive(): boolean {
    // Stamps first: one that is replaced after it was read leaves an entry that was live when the call began.
    for (const [key, id] of this.#stamps) if (this.#versionNow(key) !== id) return false;
    return this.#versionNow(this.#key) === this.#version;
  }
}

/** Nothing is told of, so nothing is watched. */
const UNWATCHED: WatchedRead = { key: "", epoch: 0, since: 0, isOver: true };

export interface ComparedNearOptions {
  readonly page: NearPage;
  readonly backend: OutboxBackend;
  readonly versionNow: VersionNow;
  readonly clock: Clock;
}

export class ComparedNear implements Near {
  readonly #options: ComparedNearOptions;

  constructor(options: ComparedNearOptions) {
    this.#options = options;
  }

  peek(key: string): unknown {
    return this.#options.page.peek(key);
  }

  begin(key: string): WatchedRead | undefined {
    return this.#options.page.declines(key) ? undefined : UNWATCHED;
  }

  end(): void {}

  keep(key: string, value: unknown, entry: Entry, _read: WatchedRead, seals: KnownStamps): boolean {
    const { page, backend, versionNow, clock } = this.#options;
    const expires = entry.expires - backend.aheadMs();
    if (expires <= clock.coarse()) return false;
    const seal = new ComparedStamps(versionNow, entry, seals.stampsOf(entry));
    return page.keep(key, value, expires, seal, payloadLength(entry.payload));
  }

  drop(key: string): void {
    this.#options.page.drop(key);
  }

  dropMatching(matches: (key: string) => boolean): void {
    for (const key of this.#options.page.keys()) if (matches(key)) this.#options.page.drop(key);
  }

  clear(): void {
    this.#options.page.clear();
  }
}
