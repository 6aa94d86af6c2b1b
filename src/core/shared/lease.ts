// Leases in a shared store: which process may load a key now, and whether what it loaded may still be stored.
//
// The lease lives in the entry's own key, so a set or delete overwrites it and storing is one compare-and-swap.
import type { SwapResult } from "../backend.ts";
import type { ChangeLog } from "../change-log.ts";
import type { Timer } from "../clock.ts";
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
/** How long a waiter sleeps before it reads the record again, unless a push wakes it earlier: doubles up to the longest. */
const FIRST_POLL_MS = 10;
const LONGEST_POLL_MS = 250;
const ALL_GROUPS: readonly number[] = Array.from({ length: TAG_GROUPS }, (_, group) => group);

/** What leases need of their namespace; every call to the store has the operation's deadline. */
export class Leases {
  readonly store: NamespaceHost;
  readonly names: Spelling;
  readonly changes: ChangeLog;
  readonly #stamps: NamespaceStamps;
  readonly #entries: Entries;

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

  /** Replaces the record of `key` if it is still `expected`. `now`: the store's time, where the caller has it. */
  swap(
    key: string,
    expected: Token | undefined,
    next: StoreRecord | undefined,
    now?: number,
  ): Promise<SwapResult> {
    return this.#entries.swap(key, expected, next, now);
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
  // An entry just read is replaced in one step; a lease found there belongs to somebody and is examined first.
  let behind: Entry | undefined = options.seen?.record?.kind === "entry" ? options.seen.record : undefined;
  let seen: Token | undefined = behind?.version;
  for (;;) {
    const now = leases.store.backend.now();
    const lease: Lease = {
      kind: "lease",
      version: leases.store.clock.token(),
      key: leases.names.entry(key),
      ...stamps,
      expires: now + LEASE_MS,
      ...(behind === undefined ? {} : { behind: withOwnPayload(behind) }),
    };
    const result = await leases.swap(key, seen, lease, now).catch((error: unknown) => {
      // The swap may have happened all the same: nobody must wait for a holder that does not exist.
      leases.swap(key, lease.version, behind).catch(() => {});
      throw error;
    });
    if (result.won) return { ticket: new LeaseTicket(leases, key, lease, groups, since) };
    const opening = await untilOpen(leases, key, result.current, options);
    if (opening.admission !== undefined) return opening.admission;
    ({ seen, behind } = opening);
    since = leases.changes.now;
    ({ stamps, groups } = await presentStamps(leases, options));
  }
}

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
  readonly seen: Token | undefined;
  readonly behind: Entry | undefined;
}

/** Examines the record in the way of a lease, and waits while another holder's lease is live. */
async function untilOpen(
  leases: Leases,
  key: string,
  first: StoreRecord | undefined,
  { force, lock }: AdmissionOptions,
): Promise<Opening> {
  let current = first;
  for (let pauseMs = FIRST_POLL_MS; ; pauseMs = Math.min(pauseMs * 2, LONGEST_POLL_MS)) {
    const entry = entryOf(current, leases.names.entry(key));
    const behind = entry !== undefined && (await leases.hasStamps(entry)) ? entry : undefined;
    const opening = { seen: current?.version, behind };
    if (current !== undefined && behind !== undefined && !force && isFresh(behind, leases.store.backend)) {
      return { ...opening, admission: { found: leases.foundOf(behind, current) } };
    }
    if (current?.kind !== "lease" || force || !(await isHeld(leases, current))) return opening;
    if (!lock) return { ...opening, admission: { ticket: undefined } };
    await changed(leases, key, current, pauseMs);
    current = await leases.read(key);
  }
}

/** A lease is held while its holder renews it and its stamps are present: a caller that knows newer stamps takes over. */
async function isHeld(leases: Leases, lease: Lease): Promise<boolean> {
  const { backend } = leases.store;
  if (backend.now() - backend.clockErrorMs() >= lease.expires) return false;
  return leases.hasStamps(lease);
}

/** Resolves when the record may have changed: on the store's push, after a pause with jitter, or when the lease expires. */
async function changed(leases: Leases, key: string, lease: Lease, pauseMs: number): Promise<void> {
  const { clock, backend } = leases.store;
  const expiresInMs = Math.max(1, lease.expires + backend.clockErrorMs() - backend.now());
  const pause = Math.min(expiresInMs, pauseMs * (0.5 + clock.random()));
  let stop: () => void = () => {};
  let timer: Timer | undefined;
  const woken = new Promise<void>((resolve) => {
    stop = leases.store.listen(leases.names.entry(key), resolve);
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
  ) {
    this.#leases = leases;
    this.#key = key;
    this.#lease = lease;
    this.#groups = groups;
    this.#since = since;
    this.#session = leases.store.session;
    this.#provenAt = leases.store.clock.now();
    this.#stopWatching = leases.watchStamps(lease, () => this.#overtaken());
    this.#renewLater();
  }

  async commit(value: unknown, options: EntryOptions): Promise<boolean> {
    const leases = this.#leases;
    const key = this.#key;
    const { version } = this.#lease;
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
    } finally {
      this.#end();
    }
  }

  abandon(): void {
    this.#end();
  }

  noticesChanges(): boolean {
    return this.#leases.store.clock.now() - this.#provenAt < UNPROVEN_MS;
  }

  get #disconnected(): boolean {
    return this.#leases.store.session !== this.#session;
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
    const timer = store.clock.after(RENEW_MS, () => {
      if (this.#disconnected) return;
      this.#renew().then(
        (renewed) => {
          if (!renewed) this.#overtaken();
          else if (!this.#over) this.#renewLater();
        },
        (error: Error) => {
          store.report(error);
          if (!this.#over) this.#renewLater();
        },
      );
    });
    this.#stopRenewing = () => timer.cancel();
  }

  async #renew(): Promise<boolean> {
    const { store } = this.#leases;
    const sentAt = store.clock.now();
    const renewed: Lease = { ...this.#lease, expires: store.backend.now() + LEASE_MS };
    const result = await this.#leases.swap(this.#key, renewed.version, renewed);
    const isHeld = result.won && (await this.#leases.hasStamps(renewed));
    this.#provenAt = sentAt;
    return isHeld;
  }

  /** From now on no caller joins this load, and its result is not stored. */
  #overtaken(): void {
    if (!this.#over) this.#leases.changes.overtake(this.#key, this.#since);
  }

  #end(): void {
    this.#stopRenewing();
    this.#stopWatching();
    if (this.#over || this.#disconnected) return;
    this.#over = true;
    const { version, behind } = this.#lease;
    this.#leases.swap(this.#key, version, behind).catch((error: Error) => this.#leases.store.report(error));
  }
}
