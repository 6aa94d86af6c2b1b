// The near tier over a store without push that answers synchronously: it caches decoded values, and every hit compares
// the versions of the entry and its stamps with the store.
import type { Clock } from "../clock.ts";
import { payloadLength } from "../codec.ts";
import type { WatchedRead } from "../invalidation/inflight-reads.ts";
import type { OutboxBackend } from "../invalidation/outbox-backend.ts";
import type { Entry, Token } from "../record.ts";
import type { KeptStamps, KnownStamps, Near, NearPage } from "./pushed-near.ts";

type VersionNow = NonNullable<OutboxBackend["versionNow"]>;

/** The version of the entry that a value was decoded from, and the stamps it carries. */
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
    // Stamps first: if one is replaced after it was read, the entry was still live when the call began.
    for (const [key, id] of this.#stamps) if (this.#versionNow(key) !== id) return false;
    return this.#versionNow(this.#key) === this.#version;
  }
}

/** Without push there is nothing to watch. */
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

  holds(key: string): boolean {
    return this.#options.page.holds(key);
  }

  begin(key: string): WatchedRead | undefined {
    return this.#options.page.declines(key) ? undefined : UNWATCHED;
  }

  end(): void {}

  keep(key: string, value: unknown, entry: Entry, _read: WatchedRead, known: KnownStamps): boolean {
    const { page, backend, versionNow, clock } = this.#options;
    const expires = entry.expires - backend.aheadMs();
    if (expires <= clock.coarse()) return false;
    const stamps = new ComparedStamps(versionNow, entry, known.stampsOf(entry));
    return page.keep(key, value, expires, stamps, payloadLength(entry.payload));
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
