// A lease that this process holds: renewed while its load runs, then replaced by what was loaded.
import { CodecError } from "../errors.ts";
import { isFresh } from "../invalidation/liveness.ts";
import { tagGroup } from "../keys.ts";
import type { EntryOptions, Ticket } from "../namespace.ts";
import type { Lease, StoreRecord, TagStamp, Token } from "../record.ts";
import { ENDED, isEnded, LEASE_MS, type Leases } from "./lease.ts";

/** How often a holder renews its lease and checks whether another process has overtaken its load. */
const RENEW_MS = 1_000;
/** A holder that last saw its lease longer ago than this may have missed being overtaken. */
const UNPROVEN_MS = 1_500;
/**
 * How long the record of a load that ended without a value stays, at least: longer than any waiter sleeps, so that each
 * of them learns of it. A store whose lifetimes are whole seconds keeps it for more than one.
 */
const ENDED_MS = 2_500;
/** How long after `loadLimit` the result of a load is still stored, provided that nobody else has begun to load. */
const LATE_MS = 600_000;

export class LeaseTicket implements Ticket {
  readonly #leases: Leases;
  readonly #key: string;
  readonly #since: number;
  readonly #session: number;
  readonly #groups: readonly (Token | undefined)[] | undefined;
  readonly #stopWatching: () => void;
  /** Until when the lease is renewed. */
  readonly #limit: number;
  #lease: Lease;
  #provenAt: number;
  #stopRenewing: () => void = () => {};
  #over = false;

  constructor(
    leases: Leases,
    key: string,
    lease: Lease,
    groups: readonly (Token | undefined)[] | undefined,
    since: number,
    limitMs: number,
  ) {
    this.#leases = leases;
    this.#key = key;
    this.#lease = lease;
    this.#groups = groups;
    this.#since = since;
    this.#session = leases.store.session;
    this.#provenAt = leases.store.clock.now();
    this.#limit = this.#provenAt + limitMs;
    this.#stopWatching = leases.watchStamps(lease, () => this.#overtaken());
    this.#renewLater();
  }

  async commit(value: unknown, options: EntryOptions): Promise<boolean> {
    const { changes, entries, store } = this.#leases;
    const { key, version, behind, namespaceStamps } = this.#lease;
    let left: StoreRecord | undefined = behind;
    try {
      if (this.#disconnected || changes.touched(this.#key, options.tags, this.#since)) return false;
      const tags = await this.#tagStamps(options);
      if (tags === undefined) return false;
      const entry = entries.make(key, store.codec.encode(value), options, { namespaceStamps, tags });
      const result = await entries.swap(key, version, entry, entry.created);
      this.#over = result.won;
      return result.won;
    } catch (error) {
      // The load has failed for everybody if what it returned cannot be stored.
      if (error instanceof CodecError) left = this.#ended();
      throw error;
    } finally {
      void this.#end(left);
    }
  }

  abandon(): Promise<void> | undefined {
    return this.#end(this.#ended());
  }

  noticesChanges(): boolean {
    return this.#leases.store.clock.now() - this.#provenAt < UNPROVEN_MS;
  }

  get #disconnected(): boolean {
    return this.#leases.store.session !== this.#session;
  }

  /** What tells waiters that this load has ended without a value. Nobody waits where a fresh value is behind the lease. */
  #ended(): StoreRecord {
    const { behind } = this.#lease;
    const isReadable = behind !== undefined && isFresh(behind, this.#leases.store.backend);
    return isReadable ? behind : { ...this.#lease, expires: ENDED };
  }

  /** An invalidation replaces the stamp of the tag's group first, then the tag's own. */
  async areCurrent(tags: readonly string[]): Promise<boolean> {
    const known = new Set(this.#lease.tags.map(({ tag }) => tag));
    const late = tags.filter((tag) => !known.has(tag));
    if (late.length === 0) return true;
    const before = this.#groups;
    if (before === undefined) return false;
    const groups = late.map(tagGroup);
    const now = await this.#leases.groupStamps(groups, true);
    return groups.every((group, at) => now[at] !== undefined && now[at] === before[group]);
  }

  /** The stamps of all tags as of the start of the load; undefined if one of them cannot be determined. */
  async #tagStamps(options: EntryOptions): Promise<readonly TagStamp[] | undefined> {
    const atStart = new Map(this.#lease.tags.map((stamp) => [stamp.tag, stamp.id]));
    const present = await this.#leases.stampsFor(options.tags, options.ttlMs + options.staleMs);
    // In this order: if the groups are unchanged after the stamps were read, those stamps were still valid.
    if (!(await this.areCurrent(options.tags))) return undefined;
    return present.tags.map(({ tag, id }) => ({ tag, id: atStart.get(tag) ?? id }));
  }

  /** Renews the lease while the load runs; stops once the lease is gone or its stamps were replaced. */
  #renewLater(): void {
    const { store } = this.#leases;
    const left = this.#limit - store.clock.now();
    const timer = store.clock.after(Math.min(RENEW_MS, left), () => {
      if (this.#disconnected || this.#over) return;
      const isLast = store.clock.now() >= this.#limit;
      this.#renew(isLast).then(
        (renewed) => {
          if (!renewed) this.#overtaken();
          else if (!this.#over && !isLast) this.#renewLater();
        },
        (error: Error) => {
          store.report(error);
          if (!this.#over && !isLast) this.#renewLater();
        },
      );
    });
    this.#stopRenewing = () => timer.cancel();
  }

  /** `isLast`: from now on anybody may take the lease; while nobody has, the result may still be stored. */
  async #renew(isLast: boolean): Promise<boolean> {
    const { store } = this.#leases;
    const sentAt = store.clock.now();
    const now = store.backend.now();
    const expires = isLast ? now - 2 * store.backend.clockErrorMs() - 1 : now + LEASE_MS;
    const renewed: Lease = { ...this.#lease, expires };
    const result = await this.#leases.entries.swap(
      renewed.key,
      renewed.version,
      renewed,
      now,
      isLast ? LATE_MS : undefined,
    );
    const isHeld = result.won && (await this.#leases.hasStamps(renewed));
    this.#provenAt = sentAt;
    return isHeld;
  }

  /** From now on no caller joins this load, and its result is not stored. */
  #overtaken(): void {
    if (!this.#over) this.#leases.changes.overtake(this.#key, this.#since);
  }

  /** Leaves `left` in place of the lease. */
  #end(left: StoreRecord | undefined): Promise<void> | undefined {
    this.#stopRenewing();
    this.#stopWatching();
    if (this.#over || this.#disconnected) return undefined;
    this.#over = true;
    const { entries, store } = this.#leases;
    const { key, version } = this.#lease;
    const keptMs = isEnded(left) ? ENDED_MS : undefined;
    return entries.swap(key, version, left, undefined, keptMs).then(
      () => {},
      (error: Error) => store.report(error),
    );
  }
}
