// Admits a load: takes the lease of a key, or waits for the load of another process that holds it.
import type { Timer } from "../clock.ts";
import { disconnectedError } from "../disconnected-namespace.ts";
import { entryOf, isFresh } from "../invalidation/liveness.ts";
import { TAG_GROUPS } from "../keys.ts";
import type { Admission, AdmissionOptions, Found, Ticket } from "../namespace.ts";
import type { Entry, Lease, StampSet, StoreRecord, Token } from "../record.ts";
import { ENDED, isEnded, LEASE_MS, type Leases } from "./lease.ts";
import { LeaseTicket } from "./lease-ticket.ts";

/** The tail of a lease's version that leases which follow each other's failed loads have in common. */
const CHAIN_LENGTH = 4;
/** How long a waiter sleeps before it reads the record again, unless a push wakes it earlier: doubles up to the longest. */
const FIRST_POLL_MS = 10;
const LONGEST_POLL_MS = 250;
/** Stamps do not live for ever because a load may. */
const LONGEST_LOAD_MS = 3_600_000;
const ALL_GROUPS: readonly number[] = Array.from({ length: TAG_GROUPS }, (_, group) => group);

export async function admit(leases: Leases, key: string, options: AdmissionOptions): Promise<Admission> {
  // Earlier invalidations do not concern a load that begins only now.
  let since = leases.changes.now;
  const spelled = leases.names.entry(key);
  let { stamps, groups } = await presentStamps(leases, options);
  const seen = options.seen?.record;
  // An entry just read is replaced in one step; a lease that somebody may hold is examined first.
  let found: StoreRecord | undefined = seen?.kind === "entry" || isEnded(seen) ? seen : undefined;
  let behind = found && entryOf(found, spelled);
  let awaited: Lease | undefined;
  for (;;) {
    if (options.signal.aborted) throw disconnectedError();
    const now = leases.store.backend.now();
    // Only a leap that is noticed can be distinguished from a lease that has run out.
    leases.hasTimeLeapt(now);
    const lease: Lease = {
      kind: "lease",
      version: isEnded(found) ? followingVersion(leases, found) : leases.store.clock.token(),
      key: spelled,
      ...stamps,
      expires: now + LEASE_MS,
      ...(behind === undefined ? {} : { behind: withOwnPayload(behind) }),
    };
    const result = await leases.entries.swap(spelled, found?.version, lease, now).catch((error: unknown) => {
      // The swap may have happened all the same: nobody must wait for a holder that does not exist.
      leases.entries.swap(spelled, lease.version, behind).catch(() => {});
      throw error;
    });
    if (result.won) {
      const ticket = new LeaseTicket(leases, key, lease, groups, since, options.limitMs);
      return behind === undefined
        ? { ticket }
        : { ticket, stale: await staleOf(leases, { key, lease, behind, since }, options, ticket) };
    }
    const opening = await untilOpen(leases, spelled, result.current, awaited, options);
    if (opening.admission !== undefined) return opening.admission;
    ({ found, behind, awaited } = opening);
    since = leases.changes.now;
    ({ stamps, groups } = await presentStamps(leases, options));
  }
}

/** A lease just taken, and the entry that it was put in front of. */
interface Taken {
  readonly key: string;
  readonly lease: Lease;
  readonly behind: Entry;
  /** A moment of the change log before the lease was taken. */
  readonly since: number;
}

/**
 * The entry behind a lease just taken, unless it was invalidated since it was read: the load may return it to be stored as
 * fresh. An invalidation after this check revokes the lease or makes its stamps old.
 */
async function staleOf(
  leases: Leases,
  { key, lease, behind, since }: Taken,
  { seen }: AdmissionOptions,
  ticket: Ticket,
): Promise<Found | undefined> {
  try {
    if (!(await leases.hasStamps(behind))) return undefined;
    // Race: a change of this process has ended while the answers were on their way.
    const tags = behind.tags.map(({ tag }) => tag);
    if (leases.changes.touched(key, tags, since)) return undefined;
    // What was read with this record need not be decoded again.
    return seen?.record?.version === behind.version ? seen : leases.entries.found(behind, lease);
  } catch (error) {
    void ticket.abandon();
    throw error;
  }
}

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

/**
 * The stamps that a load beginning now will store its result with. They outlast the load too: without them its lease is void
 * and its result dead.
 */
async function presentStamps(
  leases: Leases,
  { entry, lateTags, limitMs }: AdmissionOptions,
): Promise<PresentStamps> {
  const loadMs = Math.min(limitMs, LONGEST_LOAD_MS);
  const stamps = await leases.stampsFor(entry.tags, entry.ttlMs + entry.staleMs + loadMs);
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
  spelled: string,
  first: StoreRecord | undefined,
  awaitedBefore: Lease | undefined,
  { force, lock, signal }: AdmissionOptions,
): Promise<Opening> {
  let found = first;
  let awaited = awaitedBefore;
  for (let pauseMs = FIRST_POLL_MS; ; pauseMs = Math.min(pauseMs * 2, LONGEST_POLL_MS)) {
    const entry = entryOf(found, spelled);
    const behind = entry !== undefined && (await leases.hasStamps(entry)) ? entry : undefined;
    const opening = { found, behind, awaited };
    if (found !== undefined && behind !== undefined && !force && isFresh(behind, leases.store.backend)) {
      leases.forget(spelled);
      return { ...opening, admission: { found: leases.entries.found(behind, found) } };
    }
    if (found?.kind !== "lease" || force || !(await isHeld(leases, found))) {
      leases.forget(spelled);
      return opening;
    }
    if (!lock || follows(found, awaited)) {
      const stale = behind === undefined ? undefined : leases.entries.found(behind, found);
      return { ...opening, admission: { ticket: undefined, stale } };
    }
    awaited = found;
    await changed(leases, found, pauseMs, signal);
    if (signal.aborted) throw disconnectedError();
    found = await leases.read(spelled);
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
async function changed(leases: Leases, lease: Lease, pauseMs: number, signal: AbortSignal): Promise<void> {
  const { clock, backend } = leases.store;
  const expiresInMs = lease.expires + backend.clockErrorMs() - backend.now();
  const endsInMs = Math.min(expiresInMs > 0 ? expiresInMs : LEASE_MS, LEASE_MS - leases.unrenewedMs(lease));
  const pause = Math.min(Math.max(1, endsInMs), pauseMs * (0.5 + clock.random()));
  let stop: () => void = () => {};
  let timer: Timer | undefined;
  const woken = new Promise<void>((resolve) => {
    const unlisten = leases.store.listen(lease.key, resolve);
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
    if (backend.push !== undefined && (await leases.read(lease.key))?.version !== lease.version) return;
    await woken;
  } finally {
    stop();
    timer?.cancel();
  }
}
