// Stamps of a shared store: local copies, reads, creation, extension and replacement.
//
// A stamp is a random id under a reserved key. An entry is live as long as each stamp it carries equals the current one;
// a missing stamp means dead. To invalidate is to replace or remove one stamp: no index, no clock.
import type { PushChannel } from "../backend.ts";
import type { Clock } from "../clock.ts";
import { atEndOfTurn } from "../event-loop.ts";
import type { Stamp, StoreRecord, Token } from "../record.ts";
import { InflightReads, type WatchedRead } from "./inflight-reads.ts";
import { replaceStamp } from "./outbox.ts";
import type { OutboxBackend } from "./outbox-backend.ts";

/** Maximum number of local stamps; the oldest is dropped first. */
const MAX_HELD = 100_000;
/** How many stamps one touch command names. */
const TOUCH_BATCH = 1_000;

/** The local copy of a stamp. */
export class HeldStamp {
  readonly id: Token;
  /** In the store's time. */
  readonly expires: number;
  /** The epoch of the push channel when it was read; see PushChannel. */
  readonly epoch: number;
  /** Cleared when a push, or this process, says that it may have changed. */
  isPresent = true;
  /** Whether it was used since the last touch. */
  isUsed = true;

  constructor(id: Token, expires: number, epoch: number) {
    this.id = id;
    this.expires = expires;
    this.epoch = epoch;
  }
}

/** A near cache that may skip stamp checks until this is called. */
export interface StampTrust {
  revoke(): void;
}

/** Lets one near cache skip stamp checks until a stamp changes or the event-loop turn ends. */
export class StampChecks {
  /** One at a time, so that the hits served per check do not grow with the number of namespaces. */
  #trusted: StampTrust | undefined;
  #isTurnWatched = false;
  readonly #onUse: () => void;

  /** `onUse` is called once per turn in which local stamps are relied on. */
  constructor(onUse: () => void = () => {}) {
    this.#onUse = onUse;
  }

  /**
   * The trust is revoked when any stamp is forgotten, when another near cache is trusted, and at the latest at the end of
   * this event-loop turn.
   */
  trust(holder: StampTrust): void {
    if (this.#trusted === holder) return;
    this.revoke();
    this.#trusted = holder;
    if (this.#isTurnWatched) return;
    this.#isTurnWatched = true;
    this.#onUse();
    atEndOfTurn(this.#endTurn);
  }

  revoke(): void {
    const trusted = this.#trusted;
    this.#trusted = undefined;
    trusted?.revoke();
  }

  readonly #endTurn = (): void => {
    this.#isTurnWatched = false;
    this.revoke();
  };
}

export class StampBook {
  readonly checks: StampChecks;
  readonly #backend: OutboxBackend;
  readonly #clock: Clock;
  readonly #push: PushChannel | undefined;
  readonly #held = new Map<string, HeldStamp>();
  readonly #reads: InflightReads;
  /** What `permanentNow` has read in this turn of the event loop. */
  #permanent: { readonly keys: readonly string[]; readonly ids: readonly Token[] } | undefined;

  /** `onUse` is called when local stamps are relied on without asking the store. */
  constructor(backend: OutboxBackend, clock: Clock, onUse?: () => void) {
    this.checks = new StampChecks(onUse);
    this.#backend = backend;
    this.#clock = clock;
    this.#push = backend.push;
    this.#reads = new InflightReads(backend.push);
  }

  /** Whether changes need not wait for each other: the store applies them in the order they are sent. */
  get isOrdered(): boolean {
    return this.#backend.isOrdered;
  }

  /** Whether calls of one turn of the event loop may share what they read. */
  get isShareable(): boolean {
    return this.#backend.capabilities.readsAtEndOfTurn === true;
  }

  /** The stamp's id if the local copy is valid, or if the store answers synchronously. */
  known(key: string): Token | undefined {
    return this.#current(key)?.id ?? this.#backend.versionNow?.(key);
  }

  /** The current ids, from the store where there is no local copy; undefined for a missing stamp. */
  async read(keys: readonly string[]): Promise<readonly (Token | undefined)[]> {
    const stamps = await this.#stamps(keys, false);
    return stamps.map((stamp) => stamp?.id);
  }

  /** As `read`, but always asks the store: a mismatch with a local stamp is confirmed before an entry is considered dead. */
  async confirm(keys: readonly string[]): Promise<readonly (Token | undefined)[]> {
    const stamps = await this.#stamps(keys, true);
    return stamps.map((stamp) => stamp?.id);
  }

  /**
   * The current ids. Missing stamps are created and short-lived ones extended, so that all outlive an entry with
   * `lifetimeMs`. The store has confirmed each of them before this resolves, so that a load may begin.
   */
  async ensure(keys: readonly string[], lifetimeMs: number): Promise<readonly Token[]> {
    const stamps = await this.#stamps(keys, false);
    return Promise.all(
      keys.map((key, at) => {
        const stamp = stamps[at];
        const left =
          stamp === undefined ? 0 : stamp.expires - this.#backend.now() - this.#backend.clockErrorMs();
        return stamp !== undefined && left >= lifetimeMs ? stamp.id : this.#make(key, lifetimeMs, stamp?.id);
      }),
    );
  }

  /** As `ensure` if all local copies are valid; undefined otherwise. */
  ensured(keys: readonly string[], lifetimeMs: number): readonly Token[] | undefined {
    const ids: Token[] = [];
    for (const key of keys) {
      const held = this.#current(key);
      if (held === undefined) return undefined;
      // Namespace stamps never expire; computing the store's time for them would be most of the work.
      if (held.expires !== Number.POSITIVE_INFINITY && held.expires - this.#backend.notYet() < lifetimeMs)
        return undefined;
      ids.push(held.id);
    }
    return ids;
  }

  /**
   * The ids of stamps that never expire, if the store answers synchronously and has them all; for writes and loads. Those of one
   * turn of the event loop share what they read: what another process has acknowledged since cannot be known in the same turn.
   */
  permanentNow(keys: readonly string[]): readonly Token[] | undefined {
    if (this.#permanent?.keys === keys) return this.#permanent.ids;
    const { versionNow } = this.#backend;
    if (versionNow === undefined) return undefined;
    const ids: Token[] = [];
    for (const key of keys) {
      const id = versionNow(key);
      if (id === undefined) return undefined;
      ids.push(id);
    }
    if (this.#permanent === undefined) atEndOfTurn(this.#endTurn);
    this.#permanent = { keys, ids };
    return ids;
  }

  readonly #endTurn = (): void => {
    this.#permanent = undefined;
  };

  /** Writes a new stamp: every entry that carries the old one is dead once this resolves. See replaceStamp. */
  async replace(key: string, lifetimeMs: number): Promise<boolean> {
    this.forget(key);
    try {
      return await replaceStamp(this.#backend, this.#clock, key, lifetimeMs);
    } finally {
      this.forget(key);
    }
  }

  /** Removes stamps, with the same effect; they are created again when needed. */
  async remove(keys: readonly string[]): Promise<void> {
    for (const key of keys) this.forget(key);
    try {
      await this.#backend.removeMany(keys);
    } finally {
      for (const key of keys) this.forget(key);
    }
  }

  /** Touches the stamps in use: those served from the local copy look idle to the store, which might evict them. */
  async touchUsed(): Promise<void> {
    let keys: string[] = [];
    for (const [key, held] of this.#held) {
      if (!held.isUsed) continue;
      held.isUsed = false;
      keys.push(key);
      if (keys.length < TOUCH_BATCH) continue;
      await this.#backend.touch(keys);
      keys = [];
    }
    if (keys.length > 0) await this.#backend.touch(keys);
  }

  /** The local copy, if it is valid. */
  held(key: string): HeldStamp | undefined {
    return this.#current(key);
  }

  /** The stamp may have changed: drops the local copy and the replies of in-flight reads. */
  forget(key: string): void {
    const held = this.#held.get(key);
    if (held !== undefined) this.#invalidate(held);
    this.#held.delete(key);
    this.#permanent = undefined;
    this.#reads.invalidate(key);
  }

  forgetAll(): void {
    for (const held of this.#held.values()) this.#invalidate(held);
    this.#held.clear();
    this.#permanent = undefined;
    this.#reads.invalidateAll();
  }

  #invalidate(held: HeldStamp): void {
    held.isPresent = false;
    this.checks.revoke();
  }

  #current(key: string): HeldStamp | undefined {
    const held = this.#held.get(key);
    if (held === undefined) return undefined;
    // While the push channel is trusted, every local copy is current: a changed stamp would have been forgotten.
    if (this.#push?.isTrusted?.() !== true && this.#push?.epoch(key) !== held.epoch) return undefined;
    held.isUsed = true;
    return held;
  }

  async #stamps(keys: readonly string[], fresh: boolean): Promise<readonly (HeldStamp | undefined)[]> {
    const stamps = keys.map((key) => (fresh ? undefined : this.#current(key)));
    const missing = keys.filter((_, at) => stamps[at] === undefined);
    if (missing.length === 0) return stamps;
    const fetched = await this.#fetch(missing);
    let next = 0;
    return stamps.map((stamp) => stamp ?? fetched[next++]);
  }

  async #fetch(keys: readonly string[]): Promise<readonly (HeldStamp | undefined)[]> {
    const reads = keys.map((key) => this.#reads.begin(key));
    let records: readonly (StoreRecord | undefined)[] = [];
    try {
      records = await this.#backend.readMany(keys);
    } finally {
      if (records.length === 0) for (const read of reads) this.#reads.end(read);
    }
    return reads.map((read, at) => this.#keep(read, records[at]));
  }

  #keep(read: WatchedRead, record: StoreRecord | undefined): HeldStamp | undefined {
    const isKept = this.#reads.end(read);
    if (record?.kind !== "stamp") return undefined;
    const held = new HeldStamp(record.version, record.expires, read.epoch);
    if (!isKept) return held;
    const { key } = read;
    const before = this.#held.get(key);
    // The same stamp stays the same object, so that references to it stay valid.
    if (before?.id === held.id && before.expires === held.expires && before.epoch === held.epoch)
      return before;
    if (before !== undefined) this.#invalidate(before);
    else if (this.#held.size >= MAX_HELD) this.forget(this.#held.keys().next().value ?? key);
    this.#held.set(key, held);
    return held;
  }

  /** Creates a missing stamp or extends the present one. The loser of a race takes the winner's stamp. */
  async #make(key: string, lifetimeMs: number, present: Token | undefined): Promise<Token> {
    let expected = present;
    for (;;) {
      const id = expected ?? this.#clock.token();
      // Twice the required lifetime, so that extensions are rare: each is pushed to every process.
      const doubled = lifetimeMs * 2;
      const record: Stamp = { kind: "stamp", version: id, expires: this.#expiry(doubled) };
      const result = await this.#backend.swap(key, expected, { record, lifetimeMs: doubled });
      if (result.won) return id;
      const current = result.current?.kind === "stamp" ? result.current : undefined;
      const left =
        current === undefined ? 0 : current.expires - this.#backend.now() - this.#backend.clockErrorMs();
      if (current !== undefined && left >= lifetimeMs) return current.version;
      expected = result.current?.version;
    }
  }

  #expiry(lifetimeMs: number): number {
    return this.#backend.now() + lifetimeMs;
  }
}
