// Leases in a shared store: who may load a key now, and whether what was loaded may still be stored.
//
// The lease lives in the entry's own key, so a set or delete overwrites it and storing is one compare-and-swap.
import type { SwapResult } from "../backend.ts";
import type { ChangeLog } from "../change-log.ts";
import type { Clock, Timer } from "../clock.ts";
import { entryOf, isFresh } from "../invalidation/liveness.ts";
import type { OutboxBackend } from "../invalidation/outbox-backend.ts";
import { type Spelling, TAG_GROUPS, tagGroup } from "../keys.ts";
import type { Admission, AdmissionOptions, EntryOptions, Found, Ticket } from "../namespace.ts";
import type { Entry, Lease, StampSet, StoreRecord, TagStamp, Token } from "../record.ts";

/** A holder that has said nothing for so long is taken for dead. */
const LEASE_MS = 6_000;
/** How often a holder says that it goes on, and looks whether its load was overtaken in another process. */
const RENEW_MS = 1_000;
/** So long after its lease was last seen, a holder may have missed that it was overtaken. */
const UNTOLD_MS = 1_500;
/** How long a waiter sleeps at most before it looks again, where no push wakes it. */
const FIRST_LOOK_MS = 10;
const LONGEST_LOOK_MS = 250;
const ALL_GROUPS: readonly number[] = Array.from({ length: TAG_GROUPS }, (_, group) => group);

/** What a lease needs of the namespace it is in. */
export interface LeaseHost {
  readonly changes: ChangeLog;
  readonly names: Spelling;
  readonly store: {
    readonly clock: Clock;
    readonly backend: OutboxBackend;
    /** Grows when the store is disconnected: a load that is still running leaves it alone from then on. */
    readonly session: number;
    report(error: Error): void;
    /** Calls `listener` whenever the store says that a key may have changed; returns how to stop. */
    listen(key: string, listener: () => void): () => void;
  };
  read(key: string): Promise<StoreRecord | undefined>;
  /** Replaces the record of `key` if it is still `expected`. */
  swap(key: string, expected: Token | undefined, next: StoreRecord | undefined): Promise<SwapResult>;
  /** The present stamps for these tags; each has been answered for by the store. */
  stampsFor(tags: readonly string[], lifeMs: number): Promise<StampSet>;
  /** Stamps of tag groups, for tags that a load names only when it is done. `anew`: from the store itself. */
  groupStamps(groups: readonly number[], anew?: boolean): Promise<readonly (Token | undefined)[]>;
  entryFor(key: string, value: unknown, terms: EntryOptions, seal: StampSet): Entry;
  /** `record` is what the entry was found in. */
  foundOf(entry: Entry, record: StoreRecord): Found;
  /** Whether everything that something is sealed with is present. */
  hasStamps(seal: StampSet): Promise<boolean>;
  /** Calls `onBroken` when one of these stamps was replaced, as soon as the store tells. Returns how to stop. */
  watchStamps(seal: StampSet, onBroken: () => void): () => void;
}

export async function admit(space: LeaseHost, key: string, options: AdmissionOptions): Promise<Admission> {
  // What was invalidated until now is no reason to drop a load that begins only now.
  let since = space.changes.now;
  let { seal, groups } = await presentStamps(space, options);
  // What was just read is replaced in one step; a lease found there is somebody's, and is looked at first.
  let behind: Entry | undefined = options.seen?.record?.kind === "entry" ? options.seen.record : undefined;
  let seen: Token | undefined = behind?.version;
  for (;;) {
    const lease: Lease = {
      kind: "lease",
      version: space.store.clock.token(),
      key: space.names.entry(key),
      ...seal,
      expires: space.store.backend.now() + LEASE_MS,
      ...(behind === undefined ? {} : { behind: withOwnPayload(behind) }),
    };
    const result = await space.swap(key, seen, lease).catch((error: unknown) => {
      // It may have been carried out all the same: nobody is to wait for a holder that does not exist.
      space.swap(key, lease.version, behind).catch(() => {});
      throw error;
    });
    if (result.won) return { ticket: new LeaseTicket(space, key, lease, groups, since) };
    const opening = await untilOpen(space, key, result.current, options);
    if (opening.admission !== undefined) return opening.admission;
    ({ seen, behind } = opening);
    since = space.changes.now;
    ({ seal, groups } = await presentStamps(space, options));
  }
}

/** It is kept as long as the load lasts: what it arrived with is not. */
function withOwnPayload(entry: Entry): Entry {
  const { format, bytes } = entry.payload;
  return { ...entry, payload: { format, bytes: Uint8Array.from(bytes) } };
}

interface PresentStamps {
  readonly seal: StampSet;
  /** For tags that the load names only when it is done. */
  readonly groups: readonly (Token | undefined)[] | undefined;
}

/** What a load that begins now is sealed with. */
async function presentStamps(
  space: LeaseHost,
  { entry, lateTags }: AdmissionOptions,
): Promise<PresentStamps> {
  const seal = await space.stampsFor(entry.tags, entry.ttlMs + entry.staleMs);
  return { seal, groups: lateTags ? await space.groupStamps(ALL_GROUPS) : undefined };
}

interface Opening {
  /** The answer, where there is no need to load or no way to store. */
  readonly admission?: Admission;
  /** What stands there now and may be replaced. */
  readonly seen: Token | undefined;
  readonly behind: Entry | undefined;
}

/** Looks at what stands in the way of a lease, and waits while it is somebody else's. */
async function untilOpen(
  space: LeaseHost,
  key: string,
  first: StoreRecord | undefined,
  { force, lock }: AdmissionOptions,
): Promise<Opening> {
  let current = first;
  for (let pauseMs = FIRST_LOOK_MS; ; pauseMs = Math.min(pauseMs * 2, LONGEST_LOOK_MS)) {
    const entry = entryOf(current, space.names.entry(key));
    const behind = entry !== undefined && (await space.hasStamps(entry)) ? entry : undefined;
    const opening = { seen: current?.version, behind };
    if (current !== undefined && behind !== undefined && !force && isFresh(behind, space.store.backend)) {
      return { ...opening, admission: { found: space.foundOf(behind, current) } };
    }
    if (current?.kind !== "lease" || force || !(await isHeld(space, current))) return opening;
    if (!lock) return { ...opening, admission: { ticket: undefined } };
    await changed(space, key, current, pauseMs);
    current = await space.read(key);
  }
}

/** A lease counts while its holder lives and what it is sealed with is present: whoever knows newer stamps takes over. */
async function isHeld(space: LeaseHost, lease: Lease): Promise<boolean> {
  const { backend } = space.store;
  if (backend.now() - backend.clockErrorMs() >= lease.expires) return false;
  return space.hasStamps(lease);
}

/** Resolves when the record may have changed: by the store's push, else after a pause with jitter, or when it lapses. */
async function changed(space: LeaseHost, key: string, lease: Lease, pauseMs: number): Promise<void> {
  const { clock, backend } = space.store;
  const lapses = Math.max(1, lease.expires + backend.clockErrorMs() - backend.now());
  const pause = Math.min(lapses, pauseMs * (0.5 + clock.random()));
  let stop: () => void = () => {};
  let timer: Timer | undefined;
  const woken = new Promise<void>((resolve) => {
    stop = space.store.listen(space.names.entry(key), resolve);
    timer = clock.after(pause, resolve);
    // Somebody waits for the value: a process with nothing else to do must not end meanwhile.
    timer.hold?.(true);
  });
  try {
    // A store pushes only what was read from it.
    if (backend.push !== undefined && (await space.read(key))?.version !== lease.version) return;
    await woken;
  } finally {
    stop();
    timer?.cancel();
  }
}

class LeaseTicket implements Ticket {
  readonly #space: LeaseHost;
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
    space: LeaseHost,
    key: string,
    lease: Lease,
    groups: readonly (Token | undefined)[] | undefined,
    since: number,
  ) {
    this.#space = space;
    this.#key = key;
    this.#lease = lease;
    this.#groups = groups;
    this.#since = since;
    this.#session = space.store.session;
    this.#provenAt = space.store.clock.now();
    this.#stopWatching = space.watchStamps(lease, () => this.#overtaken());
    this.#renewLater();
  }

  async commit(value: unknown, terms: EntryOptions): Promise<boolean> {
    const space = this.#space;
    const key = this.#key;
    const { version } = this.#lease;
    try {
      if (this.#disconnected || space.changes.touched(key, terms.tags, this.#since)) return false;
      const tags = await this.#sealedTags(terms);
      if (tags === undefined) return false;
      const entry = space.entryFor(key, value, terms, { lineage: this.#lease.lineage, tags });
      const result = await space.swap(key, version, entry);
      this.#over = result.won;
      return result.won;
    } finally {
      this.#end();
    }
  }

  abandon(): void {
    this.#end();
  }

  isTold(): boolean {
    return this.#space.store.clock.now() - this.#provenAt < UNTOLD_MS;
  }

  get #disconnected(): boolean {
    return this.#space.store.session !== this.#session;
  }

  /** An invalidation replaces the stamp of a tag's group first, then the tag's. */
  async areCurrent(tags: readonly string[]): Promise<boolean> {
    const begun = new Set(this.#lease.tags.map(({ tag }) => tag));
    const late = tags.filter((tag) => !begun.has(tag));
    if (late.length === 0) return true;
    const before = this.#groups;
    if (before === undefined) return false;
    const groups = late.map(tagGroup);
    const now = await this.#space.groupStamps(groups, true);
    return groups.every((group, at) => now[at] !== undefined && now[at] === before[group]);
  }

  /** The stamps of all tags as they were when the load began; undefined if that cannot be told for one of them. */
  async #sealedTags(terms: EntryOptions): Promise<readonly TagStamp[] | undefined> {
    const begun = new Map(this.#lease.tags.map((stamp) => [stamp.tag, stamp.id]));
    const present = await this.#space.stampsFor(terms.tags, terms.ttlMs + terms.staleMs);
    // After the stamps: whoever finds the groups unchanged knows that these were still good.
    if (!(await this.areCurrent(terms.tags))) return undefined;
    return present.tags.map(({ tag, id }) => ({ tag, id: begun.get(tag) ?? id }));
  }

  /** A holder that goes on says so; one that finds its lease gone or its stamps replaced stops. */
  #renewLater(): void {
    const { store } = this.#space;
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
    const { store } = this.#space;
    const askedAt = store.clock.now();
    const renewed: Lease = { ...this.#lease, expires: store.backend.now() + LEASE_MS };
    const result = await this.#space.swap(this.#key, renewed.version, renewed);
    const isHeld = result.won && (await this.#space.hasStamps(renewed));
    this.#provenAt = askedAt;
    return isHeld;
  }

  /** From now on nobody joins this load, and it stores nothing. */
  #overtaken(): void {
    if (!this.#over) this.#space.changes.overtake(this.#key, this.#since);
  }

  #end(): void {
    this.#stopRenewing();
    this.#stopWatching();
    if (this.#over || this.#disconnected) return;
    this.#over = true;
    const { version, behind } = this.#lease;
    this.#space.swap(this.#key, version, behind).catch((error: Error) => this.#space.store.report(error));
  }
}
