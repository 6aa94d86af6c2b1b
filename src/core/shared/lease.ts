// Leases in a shared store: which process may load a key now, and whether what it loaded may still be stored.
//
// The lease lives in the entry's own key, so a set or delete overwrites it and storing is one compare-and-swap.
import type { SwapResult } from "../backend.ts";
import type { ChangeLog } from "../change-log.ts";
import type { Timer } from "../clock.ts";
import { disconnectedError } from "../disconnected-namespace.ts";
import { CodecError } from "../errors.ts";
import { entryOf, isFresh } from "../invalidation/liveness.ts";
import type { NamespaceStamps } from "../invalidation/namespace-stamps.ts";
import { type Spelling, TAG_GROUPS, tagGroup } from "../keys.ts";
import type { Admission, AdmissionOptions, EntryOptions, Found, Ticket } from "../namespace.ts";
import type { Entry, Lease, StampSet, StoreRecord, TagStamp, Token } from "../record.ts";
import type { Entries } from "./entries.ts";
import type { NamespaceHost } from "./namespace-host.ts";

/** A holder that has not renewed its lease for this long counts as dead. */
const LEASE_MS = 6_000;
/** How often a holder renews its lease and checks whether another process has overtaken its load. */
const RENEW_MS = 1_000;
/** A holder that last saw its lease longer ago than this may have missed being overtaken. */
const UNPROVEN_MS = 1_500;
/**
 * How long the record of a load that ended without a value stays, at least: longer than any waiter sleeps, so that each
 * of them learns of it. A store whose lifetimes are whole seconds keeps it for more than one.
 */
const ENDED_MS = 2_500;
/** When a lease expires whose load has ended without a value: no lease that is or was held expires then. */
const ENDED = 0;
/** How long after `loadLimit` the result of a load is still stored, provided that nobody else has begun to load. */
const LATE_MS = 600_000;
/** The tail of a lease's version that leases which follow each other's failed loads have in common. */
const CHAIN_LENGTH = 4;
/** How long a waiter sleeps before it reads the record again, unless a push wakes it earlier: doubles up to the longest. */
const FIRST_POLL_MS = 10;
const LONGEST_POLL_MS = 250;
/** How long after a leap of the store's time other processes may renew leases by the former time. */
const UNSETTLED_MS = 20_000;
/** The store's time has leapt if it moves by more than this against our own clock. */
const LEAP_MS = 1_000;
/** Leases of other processes that are remembered. */
const MOST_SEEN = 100;
const ALL_GROUPS: readonly number[] = Array.from({ length: TAG_GROUPS }, (_, group) => group);

/** What leases need of their namespace; every call to the store has the operation's deadline. */
export class Leases {
  readonly store: NamespaceHost;
  readonly names: Spelling;
  readonly changes: ChangeLog;
  readonly #stamps: NamespaceStamps;
  readonly #entries: Entries;
  /** Leases that stood in the way, and when each was first seen as it is, by our own clock. */
  readonly #seen = new Map<string, Pick<Lease, "version" | "expires"> & { readonly at: number }>();
  /** The store's time minus ours, and when it last leapt. */
  #offset: number | undefined;
  #leaptAt = Number.NEGATIVE_INFINITY;

  constructor(
    store: NamespaceHost,
    names: Spelling,
    changes: ChangeLog,
    stamps: NamespaceStamps,
    entries: Entries,
  ) {
    this.store = store;
    this.names = names;
    this.changes = changes;
    this.#stamps = stamps;
    this.#entries = entries;
  }

  read(key: string): Promise<StoreRecord | undefined> {
    return this.#guarded(() => this.store.backend.read(this.names.entry(key)));
  }

  /**
   * Replaces the record of `key` if it is still `expected`. `now`: the store's time, where the caller has it. `keptMs`: how
   * long the store keeps it at least.
   */
  swap(
    key: string,
    expected: Token | undefined,
    next: StoreRecord | undefined,
    now?: number,
    keptMs?: number,
  ): Promise<SwapResult> {
    return this.#entries.swap(key, expected, next, now, keptMs);
  }

  /** The present stamps of these tags; the store has confirmed each of them. */
  stampsFor(tags: readonly string[], lifeMs: number): StampSet | Promise<StampSet> {
    // Stamps this process already knows need no call to the store, and no deadline.
    return this.#stamps.presentNow(tags, lifeMs) ?? this.#guarded(() => this.#stamps.present(tags, lifeMs));
  }

  /** Stamps of tag groups, for tags that a load names only at its end. `confirm`: read them from the store itself. */
  groupStamps(groups: readonly number[], confirm = false): Promise<readonly (Token | undefined)[]> {
    return this.#guarded(() => this.#stamps.groups(groups, confirm));
  }

  entryFor(key: string, value: unknown, options: EntryOptions, stamps: StampSet): Entry {
    return this.#entries.make(key, this.store.codec.encode(value), options, stamps);
  }

  /** `record` is what the entry was found in. */
  foundOf(entry: Entry, record: StoreRecord): Found {
    return this.#entries.found(entry, record);
  }

  /** Whether all of these stamps are still present. */
  hasStamps(stamps: StampSet): Promise<boolean> {
    return this.#guarded(async () => this.#stamps.isLive(stamps));
  }

  /** Calls `onBroken` as soon as the store reports that one of these stamps was replaced; returns how to stop. */
  watchStamps(stamps: StampSet, onBroken: () => void): () => void {
    const stops = this.#stamps.stampsOf(stamps).map(([key, id]) => this.#watch(key, id, onBroken));
    return () => {
      for (const stop of stops) stop();
    };
  }

  /** How long ago this process first saw a lease as it is now: its holder has not renewed it since. */
  unrenewedMs(lease: Lease): number {
    const now = this.store.clock.now();
    const { key, version, expires } = lease;
    const seen = this.#seen.get(key);
    if (seen?.version === version && seen.expires === expires) return now - seen.at;
    this.#seen.delete(key);
    const oldest = this.#seen.keys().next().value;
    if (this.#seen.size >= MOST_SEEN && oldest !== undefined) this.#seen.delete(oldest);
    this.#seen.set(key, { version, expires, at: now });
    return 0;
  }

  /** The record of the key is not a lease any more. */
  forget(key: string): void {
    this.#seen.delete(this.names.entry(key));
  }

  /** Whether the store's clock was changed so recently that holders may not know its new time yet. */
  hasTimeLeapt(storeNow = this.store.backend.now()): boolean {
    const { backend, clock } = this.store;
    const now = clock.now();
    const offset = storeNow - now;
    if (this.#offset !== undefined && Math.abs(offset - this.#offset) > LEAP_MS + backend.clockErrorMs())
      this.#leaptAt = now;
    this.#offset = offset;
    return now - this.#leaptAt < UNSETTLED_MS;
  }

  #watch(stampKey: string, id: Token, onChange: () => void): () => void {
    return this.store.listen(stampKey, () => {
      // A push may only mean that the stamp's lifetime was extended: compare its value.
      this.#guarded(() => this.store.stamps.confirm([stampKey])).then(([present]) => {
        if (present !== id) onChange();
      }, this.store.report);
    });
  }

  #guarded<T>(work: () => Promise<T>): Promise<T> {
    return this.store.guard.run("getOrSet", work);
  }
}

export async function admit(leases: Leases, key: string, options: AdmissionOptions): Promise<Admission> {
  // Earlier invalidations do not concern a load that begins only now.
  let since = leases.changes.now;
  let { stamps, groups } = await presentStamps(leases, options);
  const seen = options.seen?.record;
  // An entry just read is replaced in one step; a lease that somebody may hold is examined first.
  let found: StoreRecord | undefined = seen?.kind === "entry" || isEnded(seen) ? seen : undefined;
  let behind = found && entryOf(found, leases.names.entry(key));
  let awaited: Lease | undefined;
  for (;;) {
    if (options.signal.aborted) throw disconnectedError();
    const now = leases.store.backend.now();
    // Only a leap that is noticed can be distinguished from a lease that has run out.
    leases.hasTimeLeapt(now);
    const lease: Lease = {
      kind: "lease",
      version: isEnded(found) ? followingVersion(leases, found) : leases.store.clock.token(),
      key: leases.names.entry(key),
      ...stamps,
      expires: now + LEASE_MS,
      ...(behind === undefined ? {} : { behind: withOwnPayload(behind) }),
    };
    const result = await leases.swap(key, found?.version, lease, now).catch((error: unknown) => {
      // The swap may have happened all the same: nobody must wait for a holder that does not exist.
      leases.swap(key, lease.version, behind).catch(() => {});
      throw error;
    });
    if (result.won) {
      const ticket = new LeaseTicket(leases, key, lease, groups, since, options.limitMs);
      return behind === undefined
        ? { ticket }
        : { ticket, stale: await staleOf(leases, lease, behind, options, ticket) };
    }
    const opening = await untilOpen(leases, key, result.current, awaited, options);
    if (opening.admission !== undefined) return opening.admission;
    ({ found, behind, awaited } = opening);
    since = leases.changes.now;
    ({ stamps, groups } = await presentStamps(leases, options));
  }
}

/**
 * The entry behind a lease just taken, unless it was invalidated since it was read: the load may return it to be stored as
 * fresh. An invalidation after this check revokes the lease or makes its stamps old.
 */
async function staleOf(
  leases: Leases,
  lease: Lease,
  behind: Entry,
  { seen }: AdmissionOptions,
  ticket: Ticket,
): Promise<Found | undefined> {
  try {
    if (!(await leases.hasStamps(behind))) return undefined;
    // What was read with this record need not be decoded again.
    return seen?.record?.version === behind.version ? seen : leases.foundOf(behind, lease);
  } catch (error) {
    void ticket.abandon();
    throw error;
  }
}

const isEnded = (record: StoreRecord | undefined): record is Lease =>
  record?.kind === "lease" && record.expires === ENDED;

const chainOf = ({ version }: Lease): string => version.slice(-CHAIN_LENGTH);

/** The version of a lease that replaces an ended one, which tells the waiters of that one. */
const followingVersion = ({ store }: Leases, ended: Lease): Token =>
  store.clock.token().slice(CHAIN_LENGTH) + chainOf(ended);

/** Whether the load of `awaited` has ended without a value, seen from the lease that is there now. */
const follows = (lease: Lease, awaited: Lease | undefined): boolean =>
  awaited !== undefined && lease.version !== awaited.version && chainOf(lease) === chainOf(awaited);

/** The stale entry is kept for the whole load; the buffer it arrived in must not be. */
function withOwnPayload(entry: Entry): Entry {
  const { format, bytes } = entry.payload;
  return { ...entry, payload: { format, bytes: Uint8Array.from(bytes) } };
}

interface PresentStamps {
  readonly stamps: StampSet;
  /** For tags that the load names only at its end. */
  readonly groups: readonly (Token | undefined)[] | undefined;
}

/** The stamps that a load beginning now will store its result with. */
async function presentStamps(leases: Leases, { entry, lateTags }: AdmissionOptions): Promise<PresentStamps> {
  const stamps = await leases.stampsFor(entry.tags, entry.ttlMs + entry.staleMs);
  return { stamps, groups: lateTags ? await leases.groupStamps(ALL_GROUPS) : undefined };
}

interface Opening {
  /** Set when there is no need to load, or no way to store the result. */
  readonly admission?: Admission;
  /** What is there now and may be replaced. */
  readonly found: StoreRecord | undefined;
  readonly behind: Entry | undefined;
  /** The lease that was waited for last. */
  readonly awaited: Lease | undefined;
}

/**
 * Examines the record in the way of a lease, and waits while another holder's lease is live. A caller waits for one load:
 * if that ends without a value, the next holder's is not waited for.
 */
async function untilOpen(
  leases: Leases,
  key: string,
  first: StoreRecord | undefined,
  awaitedBefore: Lease | undefined,
  { force, lock, signal }: AdmissionOptions,
): Promise<Opening> {
  let found = first;
  let awaited = awaitedBefore;
  for (let pauseMs = FIRST_POLL_MS; ; pauseMs = Math.min(pauseMs * 2, LONGEST_POLL_MS)) {
    const entry = entryOf(found, leases.names.entry(key));
    const behind = entry !== undefined && (await leases.hasStamps(entry)) ? entry : undefined;
    const opening = { found, behind, awaited };
    if (found !== undefined && behind !== undefined && !force && isFresh(behind, leases.store.backend)) {
      leases.forget(key);
      return { ...opening, admission: { found: leases.foundOf(behind, found) } };
    }
    if (found?.kind !== "lease" || force || !(await isHeld(leases, found))) {
      leases.forget(key);
      return opening;
    }
    if (!lock || follows(found, awaited)) {
      const stale = behind === undefined ? undefined : leases.foundOf(behind, found);
      return { ...opening, admission: { ticket: undefined, stale } };
    }
    awaited = found;
    await changed(leases, key, found, pauseMs, signal);
    if (signal.aborted) throw disconnectedError();
    found = await leases.read(key);
  }
}

/**
 * A lease is held while its holder renews it and its stamps are present: a caller that knows newer stamps takes over. The
 * store's clock may be changed: what counts then is how long this process has seen the lease without a renewal.
 */
async function isHeld(leases: Leases, lease: Lease): Promise<boolean> {
  const { backend } = leases.store;
  if (lease.expires === ENDED || leases.unrenewedMs(lease) >= LEASE_MS) return false;
  const isOver = backend.now() - backend.clockErrorMs() >= lease.expires;
  if (isOver && !leases.hasTimeLeapt()) return false;
  return leases.hasStamps(lease);
}

/**
 * Resolves when the record may have changed: on the store's push, after a pause with jitter, or when the lease expires. Also
 * when the cache disconnects.
 */
async function changed(
  leases: Leases,
  key: string,
  lease: Lease,
  pauseMs: number,
  signal: AbortSignal,
): Promise<void> {
  const { clock, backend } = leases.store;
  const expiresInMs = lease.expires + backend.clockErrorMs() - backend.now();
  const endsInMs = Math.min(expiresInMs > 0 ? expiresInMs : LEASE_MS, LEASE_MS - leases.unrenewedMs(lease));
  const pause = Math.min(Math.max(1, endsInMs), pauseMs * (0.5 + clock.random()));
  let stop: () => void = () => {};
  let timer: Timer | undefined;
  const woken = new Promise<void>((resolve) => {
    const unlisten = leases.store.listen(leases.names.entry(key), resolve);
    const wake = (): void => resolve();
    signal.addEventListener("abort", wake);
    stop = () => {
      unlisten();
      signal.removeEventListener("abort", wake);
    };
    timer = clock.after(pause, resolve);
    // A caller waits for the value: the process must not end meanwhile.
    timer.hold?.(true);
  });
  try {
    // A store pushes only changes of keys that were read on this connection.
    if (backend.push !== undefined && (await leases.read(key))?.version !== lease.version) return;
    await woken;
  } finally {
    stop();
    timer?.cancel();
  }
}

class LeaseTicket implements Ticket {
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
    const leases = this.#leases;
    const key = this.#key;
    const { version, behind } = this.#lease;
    let left: StoreRecord | undefined = behind;
    try {
      if (this.#disconnected || leases.changes.touched(key, options.tags, this.#since)) return false;
      const tags = await this.#tagStamps(options);
      if (tags === undefined) return false;
      const entry = leases.entryFor(key, value, options, {
        namespaceStamps: this.#lease.namespaceStamps,
        tags,
      });
      const result = await leases.swap(key, version, entry, entry.created);
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
    const result = await this.#leases.swap(
      this.#key,
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
    const { store } = this.#leases;
    const keptMs = isEnded(left) ? ENDED_MS : undefined;
    return this.#leases.swap(this.#key, this.#lease.version, left, undefined, keptMs).then(
      () => {},
      (error: Error) => store.report(error),
    );
  }
}
