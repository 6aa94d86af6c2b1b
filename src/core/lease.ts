// Leases in a shared store: who may load a key now, and whether what was loaded may still be stored.
//
// The lease lives in the entry's own key, so a set or delete overwrites it and storing is one compare-and-swap.
import type { Backend, SwapResult } from "./backend.ts";
import type { Changes } from "./changes.ts";
import type { Clock, Timer } from "./clock.ts";
import { type Spelling, TAG_GROUPS, tagGroup } from "./keys.ts";
import { entryOf, type Liveness } from "./liveness.ts";
import type { Entry, Lease, Seal, StoreRecord, TagStamp, Token } from "./record.ts";
import type { Admission, AdmissionOptions, Found, Terms, Ticket } from "./space.ts";

/** A holder that has said nothing for so long is taken for dead; a live one says something three times as often. */
const LEASE_MS = 6_000;
/** How long a waiter sleeps at most before it looks again, where no push wakes it. */
const FIRST_LOOK_MS = 10;
const LONGEST_LOOK_MS = 250;
const ALL_GROUPS: readonly number[] = Array.from({ length: TAG_GROUPS }, (_, group) => group);

/** What a lease needs of the namespace it is in. */
export interface LeaseSpace {
  readonly changes: Changes;
  readonly liveness: Liveness;
  readonly names: Spelling;
  readonly store: {
    readonly clock: Clock;
    readonly backend: Backend;
    report(error: Error): void;
    /** Calls `listener` whenever the store says that a key may have changed; returns how to stop. */
    listen(key: string, listener: () => void): () => void;
  };
  read(key: string): Promise<StoreRecord | undefined>;
  /** Replaces the record of `key` if it is still `expected`. */
  swap(key: string, expected: Token | undefined, next: StoreRecord | undefined): Promise<SwapResult>;
  /** The present stamps for these tags; each has been answered for by the store. */
  sealFor(tags: readonly string[], lifeMs: number): Promise<Seal>;
  /** Stamps of tag groups, for tags that a load names only when it is done. `anew`: from the store itself. */
  groupStamps(groups: readonly number[], anew?: boolean): Promise<readonly (Token | undefined)[]>;
  entryFor(key: string, value: unknown, terms: Terms, seal: Seal): Entry;
  foundOf(entry: Entry): Found;
  /** Notes a change of any of these stamps made elsewhere, as soon as the store tells. Returns how to stop. */
  watchSeal(seal: Seal): () => void;
}

export async function admit(space: LeaseSpace, key: string, options: AdmissionOptions): Promise<Admission> {
  const { terms, force, lock } = options;
  const seal = await space.sealFor(terms.tags, terms.ttlMs + terms.staleMs);
  const groups = options.lateTags ? await space.groupStamps(ALL_GROUPS) : undefined;
  // What was just read is replaced in one step; a lease found there is somebody's, and is looked at first.
  let behind: Entry | undefined = options.seen?.record?.kind === "entry" ? options.seen.record : undefined;
  let seen: Token | undefined = behind?.version;
  let pauseMs = FIRST_LOOK_MS;
  for (;;) {
    const lease: Lease = {
      kind: "lease",
      version: space.store.clock.token(),
      key,
      ...seal,
      expires: space.store.backend.now() + LEASE_MS,
      ...(behind === undefined ? {} : { behind }),
    };
    const result = await space.swap(key, seen, lease);
    if (result.won) return { ticket: new LeaseTicket(space, lease, groups, options.since) };
    const current = result.current;
    const entry = entryOf(current, key);
    const live = entry !== undefined && (await space.liveness.isSealed(entry));
    if (live && space.liveness.isFresh(entry) && !force) return { found: space.foundOf(entry) };
    if (current?.kind === "lease" && !force && (await isHeld(space, current))) {
      if (!lock) return { ticket: undefined };
      await changed(space, key, current, pauseMs);
      pauseMs = Math.min(pauseMs * 2, LONGEST_LOOK_MS);
      seen = undefined;
      behind = undefined;
    } else {
      seen = current?.version;
      behind = live ? entry : undefined;
    }
  }
}

/** A lease counts while its holder lives and what it is sealed with is present: whoever knows newer stamps takes over. */
async function isHeld(space: LeaseSpace, lease: Lease): Promise<boolean> {
  const { backend } = space.store;
  if (backend.now() - backend.clockErrorMs() >= lease.expires) return false;
  return space.liveness.isSealed(lease);
}

/** Resolves when the record may have changed: by the store's push, else after a pause with jitter, or when it lapses. */
async function changed(space: LeaseSpace, key: string, lease: Lease, pauseMs: number): Promise<void> {
  const { clock, backend } = space.store;
  const lapses = Math.max(1, lease.expires + backend.clockErrorMs() - backend.now());
  const pause = Math.min(lapses, pauseMs * (0.5 + clock.random()));
  let stop: () => void = () => {};
  let timer: Timer | undefined;
  const woken = new Promise<void>((resolve) => {
    stop = space.store.listen(space.names.entry(key), resolve);
    timer = clock.after(pause, resolve);
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
  readonly #space: LeaseSpace;
  readonly #since: number;
  readonly #groups: readonly (Token | undefined)[] | undefined;
  readonly #stopWatching: () => void;
  #lease: Lease;
  #stopRenewing: () => void = () => {};
  #over = false;

  constructor(
    space: LeaseSpace,
    lease: Lease,
    groups: readonly (Token | undefined)[] | undefined,
    since: number,
  ) {
    this.#space = space;
    this.#lease = lease;
    this.#groups = groups;
    this.#since = since;
    this.#stopWatching = space.watchSeal(lease);
    this.#renewLater();
  }

  async commit(value: unknown, terms: Terms): Promise<boolean> {
    const space = this.#space;
    const { key, version } = this.#lease;
    try {
      if (space.changes.touched(key, terms.tags, this.#since)) return false;
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

  /** The stamps of all tags as they were when the load began; undefined if that cannot be told for one of them. */
  async #sealedTags(terms: Terms): Promise<readonly TagStamp[] | undefined> {
    const begun = new Map(this.#lease.tags.map((stamp) => [stamp.tag, stamp.id]));
    const late = terms.tags.filter((tag) => !begun.has(tag));
    const present = await this.#space.sealFor(terms.tags, terms.ttlMs + terms.staleMs);
    if (late.length > 0) {
      if (this.#groups === undefined) return undefined;
      // After the stamps and from the store itself: an invalidation replaces the group first, then the tag.
      const groups = late.map(tagGroup);
      const now = await this.#space.groupStamps(groups, true);
      if (!groups.every((group, at) => now[at] !== undefined && now[at] === this.#groups?.[group])) return undefined;
    }
    return present.tags.map(({ tag, id }) => ({ tag, id: begun.get(tag) ?? id }));
  }

  /** A holder that goes on says so; one that finds its lease gone stops. */
  #renewLater(): void {
    const { clock, backend } = this.#space.store;
    const timer = clock.after(LEASE_MS / 3, () => {
      const renewed: Lease = { ...this.#lease, expires: backend.now() + LEASE_MS };
      this.#space.swap(renewed.key, renewed.version, renewed).then(
        (result) => {
          if (result.won && !this.#over) this.#renewLater();
        },
        (error: Error) => {
          this.#space.store.report(error);
          if (!this.#over) this.#renewLater();
        },
      );
    });
    this.#stopRenewing = () => timer.cancel();
  }

  #end(): void {
    this.#stopRenewing();
    this.#stopWatching();
    if (this.#over) return;
    this.#over = true;
    const { key, version, behind } = this.#lease;
    this.#space.swap(key, version, behind).catch((error: Error) => this.#space.store.report(error));
  }
}

/** How long the store keeps a record, from now. */
export function lifetimeMs(record: StoreRecord, now: number): number {
  if (record.kind === "entry") return record.staleUntil - now;
  if (record.kind === "stamp") return record.expires - now;
  return Math.max(record.expires, record.behind?.staleUntil ?? 0) - now;
}
