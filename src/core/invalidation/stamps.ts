// Stamps of a shared store: what is at hand, what must be asked, how one is made, kept alive and replaced.
//
// A stamp is a random id under a reserved key. Something sealed with stamps is live while each still equals the
// present one; a missing stamp means dead. To invalidate is to replace or remove one stamp: no index, no clock.
import type { PushChannel } from "../backend.ts";
import type { Clock } from "../clock.ts";
import { atEndOfTurn } from "../event-loop.ts";
import type { Stamp, StoreRecord, Token } from "../record.ts";
import { InflightReads, type WatchedRead } from "./inflight-reads.ts";
import { replaceStamp } from "./outbox.ts";
import type { OutboxBackend } from "./outbox-backend.ts";

/** How many stamps are kept at hand; the oldest leaves first. */
const MOST_AT_HAND = 100_000;
/** How many the store is told of at once. */
const TOUCHED_AT_ONCE = 1_000;

/** A stamp at hand. */
export class HeldStamp {
  readonly id: Token;
  /** In the store's time. */
  readonly expires: number;
  /** The state of the push channel under which it was read; see PushChannel. */
  readonly epoch: number;
  /** Until the store, or this process, says that it may have changed. */
  isPresent = true;
  /** Since the store was last told which stamps are in use. */
  isUsed = true;

  constructor(id: Token, expires: number, epoch: number) {
    this.id = id;
    this.expires = expires;
    this.epoch = epoch;
  }
}

export interface StampTrust {
  /** Look again. */
  revoke(): void;
}

export class StampChecks {
  /** One at a time: so what is served on a look does not grow with the namespaces. */
  #assured: StampTrust | undefined;
  #isTurnWatched = false;
  readonly #used: () => void;

  /** `used` is told in every turn in which somebody relies on stamps. */
  constructor(used: () => void = () => {}) {
    this.#used = used;
  }

  /**
   * He is told to doubt when any stamp is forgotten, when somebody else is assured, and at the latest when this turn of the
   * event loop is over.
   */
  assure(someone: StampTrust): void {
    if (this.#assured === someone) return;
    this.revoke();
    this.#assured = someone;
    if (this.#isTurnWatched) return;
    this.#isTurnWatched = true;
    this.#used();
    atEndOfTurn(this.#endTurn);
  }

  revoke(): void {
    const assured = this.#assured;
    this.#assured = undefined;
    assured?.revoke();
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

  /** `used` is told when stamps at hand are relied on without the store being asked. */
  constructor(backend: OutboxBackend, clock: Clock, used?: () => void) {
    this.checks = new StampChecks(used);
    this.#backend = backend;
    this.#clock = clock;
    this.#push = backend.push;
    this.#reads = new InflightReads(backend.push);
  }

  /** Whether changes need not wait for each other: they are carried out in the order they are made. */
  get isOrdered(): boolean {
    return this.#backend.isOrdered;
  }

  /** The stamp's id if it is at hand and the store would have told of a change, or if the store says it at once. */
  known(key: string): Token | undefined {
    return this.#current(key)?.id ?? this.#backend.versionNow?.(key);
  }

  /** The present ids, from the store where they are not at hand; undefined for a missing stamp. */
  async read(keys: readonly string[]): Promise<readonly (Token | undefined)[]> {
    const stamps = await this.#stamps(keys, false);
    return stamps.map((stamp) => stamp?.id);
  }

  /** As `read`, but always asks the store: before something is judged dead, a mismatch at hand is confirmed. */
  async confirm(keys: readonly string[]): Promise<readonly (Token | undefined)[]> {
    const stamps = await this.#stamps(keys, true);
    return stamps.map((stamp) => stamp?.id);
  }

  /**
   * The present ids; missing stamps are made, and all are made to outlive something that lives for `lifetimeMs`.
   * The store has answered for each before this resolves, so that a load may begin.
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

  /** As `ensure` where nothing has to be asked; undefined otherwise. */
  ensured(keys: readonly string[], lifetimeMs: number): readonly Token[] | undefined {
    const ids: Token[] = [];
    const now = this.#backend.now() + this.#backend.clockErrorMs();
    for (const key of keys) {
      const held = this.#current(key);
      if (held === undefined || held.expires - now < lifetimeMs) return undefined;
      ids.push(held.id);
    }
    return ids;
  }

  /** Writes a new stamp: everything sealed with the old one is dead once this resolves. See replaceStamp. */
  async replace(key: string, lifetimeMs: number): Promise<boolean> {
    this.forget(key);
    try {
      return await replaceStamp(this.#backend, this.#clock, key, lifetimeMs);
    } finally {
      this.forget(key);
    }
  }

  /** Removes a stamp: the same effect; whoever needs it next makes a new one. */
  async remove(keys: readonly string[]): Promise<void> {
    for (const key of keys) this.forget(key);
    try {
      await this.#backend.removeMany(keys);
    } finally {
      for (const key of keys) this.forget(key);
    }
  }

  /** A stamp known from what is at hand looks idle to the store, which might drop it for others: tell that it is used. */
  async touchUsed(): Promise<void> {
    let keys: string[] = [];
    for (const [key, held] of this.#held) {
      if (!held.isUsed) continue;
      held.isUsed = false;
      keys.push(key);
      if (keys.length < TOUCHED_AT_ONCE) continue;
      await this.#backend.touch(keys);
      keys = [];
    }
    if (keys.length > 0) await this.#backend.touch(keys);
  }

  /** The stamp at hand, if the store would have told of a change. */
  held(key: string): HeldStamp | undefined {
    return this.#current(key);
  }

  /** The stamp may have changed: what is at hand or on its way here no longer counts. */
  forget(key: string): void {
    const held = this.#held.get(key);
    if (held !== undefined) this.#invalidate(held);
    this.#held.delete(key);
    this.#reads.spoil(key);
  }

  forgetAll(): void {
    for (const held of this.#held.values()) this.#invalidate(held);
    this.#held.clear();
    this.#reads.spoilAll();
  }

  #invalidate(held: HeldStamp): void {
    held.isPresent = false;
    this.checks.revoke();
  }

  #current(key: string): HeldStamp | undefined {
    const held = this.#held.get(key);
    if (held === undefined) return undefined;
    // While everything is told of, whatever is held is present: what is not was forgotten.
    if (this.#push?.isTrusted?.() !== true && this.#push?.epoch(key) !== held.epoch) return undefined;
    held.isUsed = true;
    return held;
  }

  async #stamps(keys: readonly string[], anew: boolean): Promise<readonly (HeldStamp | undefined)[]> {
    const stamps = keys.map((key) => (anew ? undefined : this.#current(key)));
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
    // The same stamp is the same object: what refers to it stays valid.
    if (before?.id === held.id && before.expires === held.expires && before.epoch === held.epoch)
      return before;
    if (before !== undefined) this.#invalidate(before);
    else if (this.#held.size >= MOST_AT_HAND) this.forget(this.#held.keys().next().value ?? key);
    this.#held.set(key, held);
    return held;
  }

  /** Makes a missing stamp, or the same one longer-lived. Whoever comes second takes what is there. */
  async #make(key: string, lifetimeMs: number, present: Token | undefined): Promise<Token> {
    let expected = present;
    for (;;) {
      const id = expected ?? this.#clock.token();
      // Twice the need, so that an extension is rare: every one of them is pushed to every process.
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
