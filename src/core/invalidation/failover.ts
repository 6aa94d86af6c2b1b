// Detects restarts and failovers: does the connected server have every write that was acknowledged before?
//
// A server may restart from an old snapshot, or a replica without the latest writes may be promoted. Next to each root
// namespace the store holds a note: which server it is on, and when a process last confirmed that. A process that connects
// to a server which does not match the note replaces the namespace's stamp before anything is served; unless the server
// was already running when the note was written: then it is a promoted replica that has the note, and every write
// acknowledged before it. Each process repeats its own invalidations made after the note. The first process to connect
// replaces the note and records in it from when on the others have to repeat theirs.
//
// A server process that was a replica for a while keeps its run id and may have taken over data that lacks acknowledged
// writes. It is the server of the note only if its replication history continues the noted one.
import type { Backend, ConnectedServer, ReplicationHistory } from "../backend.ts";
import type { Clock } from "../clock.ts";
import { endOfTurn } from "../event-loop.ts";
import type { Entry, Token } from "../record.ts";
import { deliver, isRefusal, type PendingInvalidation } from "./outbox.ts";
import { REPLICATION_MS, type RecentInvalidations } from "./recent-invalidations.ts";

/** A root namespace, which has a note of its own. */
export interface FailoverSubject {
  /** Key of its stamp. */
  readonly stampKey: string;
  /** Key of its note on the server with this anchor. */
  noteKey(anchor: string): string;
}

interface ServerIdentity {
  readonly run: string;
  /** Its replication history, and how far that had come at least. */
  readonly history?: string;
  readonly offset?: number;
  /** When a process last confirmed it, in the store's time. */
  readonly at: number;
  /** The previous servers, latest first, and when each was last confirmed as far as this server knows. */
  readonly before?: readonly Pick<ServerIdentity, "run" | "at">[] | undefined;
  /** The latest time before its clock was set back, and when that was noticed by the new one. */
  readonly setBack?: { readonly from: number; readonly at: number } | undefined;
}

type Background = Pick<ServerIdentity, "before" | "setBack">;

/** How often a note is confirmed while the cache is in use. */
const CONFIRM_MS = 10_000;
/** A server reports its uptime in whole seconds. */
const START_ERROR_MS = 2_000;
/** How many previous servers a note lists. */
const MOST_BEFORE = 8;
/** Maximum difference between the clocks of two servers. */
const CLOCK_ERROR_MS = 2_000;
/** How far apart processes in use may be in what they last knew of a server's time. A later note is from before a step back. */
const SET_BACK_MS = 15_000;
/** How long it takes all processes in use to notice that a clock was set back. */
const SET_BACK_NOTED_MS = 60_000;

export class Failover {
  readonly #clock: Clock;
  readonly #recent: RecentInvalidations;
  /** The server last connected at each anchor. */
  readonly #servers = new Map<string, ConnectedServer>();
  /** The server named by each note when it was last read or written. */
  readonly #noted = new Map<string, Known>();

  #repeats = 0;

  constructor(clock: Clock, recent: RecentInvalidations) {
    this.#clock = clock;
    this.#recent = recent;
  }

  /** How often the recent invalidations were repeated: those in progress at the time were not among them. */
  get repeats(): number {
    return this.#repeats;
  }

  get servers(): Iterable<ConnectedServer> {
    return this.#servers.values();
  }

  /** Nothing may be served from this server until it resolves. */
  async onServer(server: ConnectedServer, namespaces: readonly FailoverSubject[]): Promise<void> {
    const before = this.#servers.get(server.anchor);
    const noted = await Promise.all(namespaces.map((namespace) => this.check(namespace, server, true)));
    if (before !== undefined && !isSameServer(before, server)) {
      await this.#repeat(Math.min(server.lastProvenAt - REPLICATION_MS, ...noted), server, namespaces);
    }
    this.#servers.set(server.anchor, withoutStep(server));
  }

  /**
   * Compares the note of a namespace with the server, and repairs a mismatch. Returns the time, by the local clock, up
   * to which the server certainly has every acknowledged write. `isNew`: it has just been connected to; otherwise its
   * history may be older than the note's.
   */
  async check(namespace: FailoverSubject, server: ConnectedServer, isNew = false): Promise<number> {
    const { records } = server;
    const key = namespace.noteKey(server.anchor);
    const before = this.#servers.get(server.anchor)?.runId;
    let note = noteIn(await records.read(key));
    const isUsed = note === undefined && (await records.read(namespace.stampKey)) !== undefined;
    // Race: a process may have begun to use the server in between. It writes the note before there is a stamp.
    if (isUsed) note = noteIn(await records.read(key));
    const present = this.#servers.get(server.anchor)?.runId;
    // Race: another server was promoted and connected while the read was in flight, and answered it.
    if (present !== before && present !== server.runId) return this.#clock.now();
    if (note?.run === server.runId && (!isNew || isNotedHistory(note, server.history))) {
      this.#noted.set(key, server);
      if (server.setBackFrom !== undefined)
        await this.#clockSetBack(namespace, server, server.setBackFrom, note);
      else if (records.now() - note.at >= CONFIRM_MS) await this.#renew(namespace, server, note);
      return this.#localTime(note.before?.find(({ run }) => run === before)?.at, server);
    }
    // A note seen on this very server before was flushed or evicted: no lost write can have come back.
    const noted = this.#noted.get(key);
    const isGone = note === undefined && noted !== undefined && isSameServer(noted, server);
    const isUnused = isGone || (note === undefined && !isUsed);
    const isContinued =
      note !== undefined &&
      note.run !== server.runId &&
      server.startedAt + START_ERROR_MS < note.at &&
      // A clock that was set back makes a restarted server look older than the note.
      note.at < records.now() + CLOCK_ERROR_MS &&
      this.#hasOverlapped(server);
    const isTrusted = isUnused || isContinued || (await this.#isNotedElsewhere(namespace, server));
    if (!isTrusted) await this.#replaceStamps([namespace], server);
    const { run, at, before: earlier = [] } = note ?? { run: "", at: 0 };
    await this.#write(namespace, server, {
      before: isContinued ? [{ run, at }, ...earlier].slice(0, MOST_BEFORE) : [],
    });
    return this.#localTime(isContinued ? at : undefined, server);
  }

  /**
   * Whether this very server was noted at another anchor: in a cluster its lowest slot may have moved. Without a history a
   * run id may be that of several servers.
   */
  async #isNotedElsewhere(namespace: FailoverSubject, server: ConnectedServer): Promise<boolean> {
    const { history, spareAnchor, runId, records } = server;
    if (history === undefined) return false;
    const isKnown = [...this.#servers.keys()].some((anchor) => {
      const noted = this.#noted.get(namespace.noteKey(anchor));
      return noted !== undefined && isSameServer(noted, server);
    });
    if (isKnown || spareAnchor === undefined) return isKnown;
    const spare = noteIn(await records.read(namespace.noteKey(spareAnchor)));
    return spare?.run === runId && spare.history !== undefined && isNotedHistory(spare, history);
  }

  /**
   * By the new time of the clock, expired entries may be fresh again: the namespace is invalidated. The first process to
   * notice does it, and says so in the note.
   */
  async #clockSetBack(
    namespace: FailoverSubject,
    server: ConnectedServer,
    from: number,
    note: ServerIdentity,
  ): Promise<void> {
    const { setBack } = note;
    const now = server.records.now();
    const isDone =
      setBack !== undefined &&
      setBack.from > from - SET_BACK_MS &&
      Math.abs(now - setBack.at) < SET_BACK_NOTED_MS;
    if (isDone) return;
    await this.#replaceStamps([namespace], server);
    await this.#renew(namespace, server, { ...note, setBack: { from, at: now } });
  }

  /** Whether it was running while the former server still answered this process, by the local clock; true if none did. */
  #hasOverlapped({ startedAt, lastProvenAt, records }: ConnectedServer): boolean {
    const uptimeMs = records.now() - startedAt;
    return lastProvenAt === 0 || this.#clock.now() - uptimeMs + START_ERROR_MS < lastProvenAt;
  }

  /** Converts the store's time to local time, erring on the early side; without a time: now. */
  #localTime(at: number | undefined, { records }: ConnectedServer): number {
    return this.#clock.now() - (at === undefined ? 0 : records.now() - at + CLOCK_ERROR_MS);
  }

  async #repeat(
    since: number,
    server: ConnectedServer,
    namespaces: readonly FailoverSubject[],
  ): Promise<void> {
    // Invalidations acknowledged in this turn are recorded at its end.
    await endOfTurn();
    this.#repeats++;
    const invalidations = this.#recent.since(since);
    if (invalidations === undefined) await this.#replaceStamps(namespaces, server);
    else await this.#redeliver(invalidations, server);
  }

  /** Only keys on this server can be missing there. */
  async #redeliver(invalidations: readonly PendingInvalidation[], server: ConnectedServer): Promise<void> {
    const owned = invalidations.filter(({ key }) => server.owns(key));
    // New stamps first: a tag group's stamp must be replaced before the stamps of its tags are removed.
    const [removals, stamps] = [
      owned.filter(isRemoval),
      owned.filter((invalidation) => !isRemoval(invalidation)),
    ];
    for (const some of [stamps, removals]) {
      await Promise.all(some.map((invalidation) => deliver(invalidation, server.records, this.#clock)));
    }
    // The next promoted server may lack them again.
    this.#recent.add(owned);
  }

  async #replaceStamps(namespaces: readonly FailoverSubject[], { records }: ConnectedServer): Promise<void> {
    const invalidations = namespaces.map(
      ({ stampKey }): PendingInvalidation => ({
        key: stampKey,
        stampMs: Number.POSITIVE_INFINITY,
        root: stampKey,
      }),
    );
    for (const invalidation of invalidations) await deliver(invalidation, records, this.#clock);
    this.#recent.add(invalidations);
  }

  /** A store that rejects writes can still be served from: an older note only means that more is repeated later. */
  async #renew(
    namespace: FailoverSubject,
    server: ConnectedServer,
    { before, setBack, history, offset }: ServerIdentity,
  ): Promise<void> {
    try {
      // The noted history is at least as recent as the one that was read when this process connected.
      const noted = history === undefined || offset === undefined ? server.history : { id: history, offset };
      await this.#write(namespace, { ...server, history: noted }, { before, setBack });
    } catch (error) {
      if (!isRefusal(error)) throw error;
    }
  }

  async #write(
    namespace: FailoverSubject,
    server: ConnectedServer,
    { before = [], setBack }: Background,
  ): Promise<void> {
    const { records, runId, history, anchor, spareAnchor = anchor } = server;
    this.#noted.set(namespace.noteKey(anchor), server);
    const note: ServerIdentity = {
      run: runId,
      at: records.now(),
      ...(history === undefined ? {} : { history: history.id, offset: history.offset }),
      ...(before.length === 0 ? {} : { before }),
      ...(setBack === undefined ? {} : { setBack }),
    };
    for (const key of new Set([anchor, spareAnchor].map((each) => namespace.noteKey(each))))
      await records.write({ key, record: this.#entryOf(key, note), lifetimeMs: Number.POSITIVE_INFINITY });
  }

  #entryOf(key: string, note: ServerIdentity): Entry {
    return {
      kind: "entry",
      version: noteVersion(this.#clock),
      key,
      namespaceStamps: [],
      tags: [],
      created: note.at,
      expires: Number.POSITIVE_INFINITY,
      staleUntil: Number.POSITIVE_INFINITY,
      payload: { format: 0, bytes: Buffer.from(JSON.stringify(note)) },
    };
  }
}

/** A note is only ever overwritten, never compared and swapped, so its version need not come from node:crypto, which is slow to load. */
const noteVersion = ({ random }: Clock): Token =>
  String.fromCharCode(...Array.from({ length: 8 }, () => Math.floor(random() * 256)));

/** A step back is dealt with once. */
const withoutStep = ({ setBackFrom, ...server }: ConnectedServer): ConnectedServer => server;

interface Known extends Pick<ConnectedServer, "history"> {
  readonly runId: string | undefined;
}

/** Whether the server has every write that was acknowledged when it was last known. */
export function isSameServer(before: Known, now: Known): boolean {
  if (before.runId !== now.runId) return false;
  const [earlier, later] = [before.history, now.history];
  if (earlier === undefined || later === undefined) return true;
  return later.id === earlier.id ? later.offset >= earlier.offset : continues(later, earlier);
}

/** Within one history a master only moves on, and the note may be younger than what the server reported: any offset will do. */
function isNotedHistory(
  { history, offset = 0 }: ServerIdentity,
  now: ReplicationHistory | undefined,
): boolean {
  if (history === undefined || now === undefined) return true;
  return now.id === history || continues(now, { id: history, offset });
}

/**
 * Whether a history of another name continues an earlier one of the same process. A promoted server names the history it
 * has followed. One that names none was not promoted: a master also begins a new history when its first replica comes, and
 * when it has been without one for an hour.
 */
function continues(
  { offset, formerId, formerEnd = 0 }: ReplicationHistory,
  earlier: ReplicationHistory,
): boolean {
  if (formerId === undefined) return offset >= earlier.offset;
  return formerId === earlier.id && earlier.offset < formerEnd;
}

const isRemoval = ({ stampMs }: PendingInvalidation): boolean => stampMs === undefined;

function noteIn(record: Awaited<ReturnType<Backend["read"]>>): ServerIdentity | undefined {
  if (record?.kind !== "entry") return undefined;
  try {
    const note: unknown = JSON.parse(Buffer.from(record.payload.bytes).toString("utf8"));
    if (!isMention(note)) return undefined;
    const { before, history, offset, setBack }: Partial<Record<keyof ServerIdentity, unknown>> = note;
    return {
      run: note.run,
      at: note.at,
      ...(typeof history === "string" && typeof offset === "number" ? { history, offset } : {}),
      before: Array.isArray(before) ? before.filter(isMention) : [],
      setBack: isSetBack(setBack) ? setBack : undefined,
    };
  } catch {
    return undefined;
  }
}

function isSetBack(value: unknown): value is NonNullable<ServerIdentity["setBack"]> {
  if (typeof value !== "object" || value === null) return false;
  const { from, at }: { from?: unknown; at?: unknown } = value;
  return typeof from === "number" && typeof at === "number";
}

/** Whether a value names a server and a time. */
function isMention(value: unknown): value is Pick<ServerIdentity, "run" | "at"> {
  if (typeof value !== "object" || value === null) return false;
  const { run, at }: Partial<Record<keyof ServerIdentity, unknown>> = value;
  return typeof run === "string" && typeof at === "number";
}
