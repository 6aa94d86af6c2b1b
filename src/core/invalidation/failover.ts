// Detects restarts and failovers: does the connected server have every write that was acknowledged before?
//
// A server may restart from an old snapshot, or a replica without the latest writes may be promoted. Next to each root
// namespace the store holds a note: which server it is on, and when a process last confirmed that. A process that connects
// to a server which does not match the note replaces the namespace's stamp before anything is served; unless the server
// was already running when the note was written: then it is a promoted replica that has the note, and every write
// acknowledged before it. Each process repeats its own invalidations made after the note. The first process to connect
// replaces the note and records in it from when on the others have to repeat theirs.
import type { Backend, ConnectedServer } from "../backend.ts";
import type { Clock } from "../clock.ts";
import { endOfTurn } from "../event-loop.ts";
import type { Entry } from "../record.ts";
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
  /** When a process last confirmed it, in the store's time. */
  readonly at: number;
  /** The previous servers, latest first, and when each was last confirmed as far as this server knows. */
  readonly before?: readonly Pick<ServerIdentity, "run" | "at">[];
}

/** How often a note is confirmed while the cache is in use. */
const CONFIRM_MS = 10_000;
/** A server reports its uptime in whole seconds. */
const START_ERROR_MS = 2_000;
/** How many previous servers a note lists. */
const MOST_BEFORE = 8;
/** Maximum difference between the clocks of two servers. */
const CLOCK_ERROR_MS = 2_000;

export class Failover {
  readonly #clock: Clock;
  readonly #recent: RecentInvalidations;
  /** The server last connected at each anchor. */
  readonly #servers = new Map<string, ConnectedServer>();
  /** The server named by each note when it was last read or written. */
  readonly #noted = new Map<string, string>();

  constructor(clock: Clock, recent: RecentInvalidations) {
    this.#clock = clock;
    this.#recent = recent;
  }

  get servers(): Iterable<ConnectedServer> {
    return this.#servers.values();
  }

  /** Nothing may be served from this server until it resolves. */
  async onServer(server: ConnectedServer, namespaces: readonly FailoverSubject[]): Promise<void> {
    const before = this.#servers.get(server.anchor);
    const noted = await Promise.all(namespaces.map((namespace) => this.check(namespace, server)));
    if (before !== undefined && before.runId !== server.runId) {
      await this.#repeat(Math.min(server.lastProvenAt - REPLICATION_MS, ...noted), server, namespaces);
    }
    this.#servers.set(server.anchor, server);
  }

  /**
   * Compares the note of a namespace with the server, and repairs a mismatch. Returns the time, by the local clock, up
   * to which the server certainly has every acknowledged write.
   */
  async check(namespace: FailoverSubject, server: ConnectedServer): Promise<number> {
    const { records } = server;
    const key = namespace.noteKey(server.anchor);
    const before = this.#servers.get(server.anchor)?.runId;
    const note = noteIn(await records.read(key));
    const present = this.#servers.get(server.anchor)?.runId;
    // Race: another server was promoted and connected while the read was in flight, and answered it.
    if (present !== before && present !== server.runId) return this.#clock.now();
    if (note?.run === server.runId) {
      this.#noted.set(key, server.runId);
      if (records.now() - note.at >= CONFIRM_MS) await this.#renew(key, server, note.before);
      return this.#localTime(note.before?.find(({ run }) => run === before)?.at, server);
    }
    // A note seen on this very server before was flushed or evicted: no lost write can have come back.
    const isGone = note === undefined && this.#noted.get(key) === server.runId;
    const isNew = isGone || (note === undefined && (await records.read(namespace.stampKey)) === undefined);
    const isContinued = note !== undefined && server.startedAt + START_ERROR_MS < note.at;
    if (!isNew && !isContinued) await this.#replaceStamps([namespace], server);
    const { run, at, before: earlier = [] } = note ?? { run: "", at: 0 };
    await this.#write(key, server, isContinued ? [{ run, at }, ...earlier].slice(0, MOST_BEFORE) : []);
    return this.#localTime(isContinued ? at : undefined, server);
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
  async #renew(key: string, server: ConnectedServer, before: ServerIdentity["before"]): Promise<void> {
    try {
      await this.#write(key, server, before);
    } catch (error) {
      if (!isRefusal(error)) throw error;
    }
  }

  #write(
    key: string,
    { records, runId }: ConnectedServer,
    before: ServerIdentity["before"] = [],
  ): Promise<void> {
    this.#noted.set(key, runId);
    const note: ServerIdentity = {
      run: runId,
      at: records.now(),
      ...(before.length === 0 ? {} : { before }),
    };
    const entry: Entry = {
      kind: "entry",
      version: this.#clock.token(),
      key,
      namespaceStamps: [],
      tags: [],
      created: note.at,
      expires: Number.POSITIVE_INFINITY,
      staleUntil: Number.POSITIVE_INFINITY,
      payload: { format: 0, bytes: Buffer.from(JSON.stringify(note)) },
    };
    return records.write({ key, record: entry, lifetimeMs: Number.POSITIVE_INFINITY });
  }
}

const isRemoval = ({ stampMs }: PendingInvalidation): boolean => stampMs === undefined;

function noteIn(record: Awaited<ReturnType<Backend["read"]>>): ServerIdentity | undefined {
  if (record?.kind !== "entry") return undefined;
  try {
    const note: unknown = JSON.parse(Buffer.from(record.payload.bytes).toString("utf8"));
    if (!isMention(note)) return undefined;
    const { before }: Partial<Record<keyof ServerIdentity, unknown>> = note;
    return { run: note.run, at: note.at, before: Array.isArray(before) ? before.filter(isMention) : [] };
  } catch {
    return undefined;
  }
}

/** Whether a value names a server and a time. */
function isMention(value: unknown): value is Pick<ServerIdentity, "run" | "at"> {
  if (typeof value !== "object" || value === null) return false;
  const { run, at }: Partial<Record<keyof ServerIdentity, unknown>> = value;
  return typeof run === "string" && typeof at === "number";
}
