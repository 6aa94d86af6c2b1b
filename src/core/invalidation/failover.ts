// Whether the server that answers now has what was acknowledged before.
//
// A server may come back with an old snapshot, or a replica that lacks the latest writes may take its place. Next to each
// root namespace the store keeps a note: which server it is on, and when somebody last confirmed that. Whoever meets a
// server that the note does not fit replaces the namespace's stamp before anything is served; unless the server was
// running before the note was written: then it is a replica that had the note, and all that was acknowledged before it.
// What came after the note is repeated by every process that did it. Whoever is first replaces the note, and keeps in it
// from when on the others have to repeat.
import type { Backend, MetServer } from "../backend.ts";
import type { Clock } from "../clock.ts";
import { endOfTurn } from "../event-loop.ts";
import type { Entry } from "../record.ts";
import { deliver, isRefusal, type PendingInvalidation } from "./outbox.ts";
import { REPLICATION_MS, type RecentInvalidations } from "./recent-invalidations.ts";

/** What is told apart by its own note: a root namespace. */
export interface FailoverSubject {
  /** Key of its stamp. */
  readonly stampKey: string;
  /** Key of its note about the server with this anchor. */
  noteKey(anchor: string): string;
}

interface ServerIdentity {
  readonly run: string;
  /** When somebody last confirmed it, in the store's time. */
  readonly at: number;
  /** The servers before this one, the latest first, and when each was last confirmed, as far as this one knows. */
  readonly before?: readonly Pick<ServerIdentity, "run" | "at">[];
}

/** How often a note is confirmed while the cache is in use. */
const CONFIRM_MS = 10_000;
/** A server tells since when it runs in whole seconds. */
const START_ERROR_MS = 2_000;
/** How many former servers a note names. */
const MOST_BEFORE = 8;
/** Times that different servers told may differ by so much. */
const CLOCK_ERROR_MS = 2_000;

export class Failover {
  readonly #clock: Clock;
  readonly #recent: RecentInvalidations;
  /** The server last met at each anchor. */
  readonly #servers = new Map<string, MetServer>();
  /** The server that each note named when it was last seen or written. */
  readonly #noted = new Map<string, string>();

  constructor(clock: Clock, recent: RecentInvalidations) {
    this.#clock = clock;
    this.#recent = recent;
  }

  get servers(): Iterable<MetServer> {
    return this.#servers.values();
  }

  /** Nothing may be served from this server before it resolves. */
  async meet(server: MetServer, namespaces: readonly FailoverSubject[]): Promise<void> {
    const before = this.#servers.get(server.anchor);
    const noted = await Promise.all(namespaces.map((namespace) => this.check(namespace, server)));
    if (before !== undefined && before.runId !== server.runId) {
      await this.#repeat(Math.min(server.lastProvenAt - REPLICATION_MS, ...noted), server, namespaces);
    }
    this.#servers.set(server.anchor, server);
  }

  /**
   * Compares the note of a namespace with the server, and mends what does not fit. Returns up to which moment, by the
   * local clock, the server surely has what was acknowledged.
   */
  async check(namespace: FailoverSubject, server: MetServer): Promise<number> {
    const { records } = server;
    const key = namespace.noteKey(server.anchor);
    const before = this.#servers.get(server.anchor)?.runId;
    const note = noteIn(await records.read(key));
    const present = this.#servers.get(server.anchor)?.runId;
    // Another server has answered, which took over and was met while the question was on its way.
    if (present !== before && present !== server.runId) return this.#clock.now();
    if (note?.run === server.runId) {
      this.#noted.set(key, server.runId);
      if (records.now() - note.at >= CONFIRM_MS) await this.#renew(key, server, note.before);
      return this.#localTime(note.before?.find(({ run }) => run === before)?.at, server);
    }
    // A note that was seen on this very server was flushed or evicted: what went with it is dead, and nothing came back.
    const isGone = note === undefined && this.#noted.get(key) === server.runId;
    const isNew = isGone || (note === undefined && (await records.read(namespace.stampKey)) === undefined);
    const isContinued = note !== undefined && server.startedAt + START_ERROR_MS < note.at;
    if (!isNew && !isContinued) await this.#replaceStamps([namespace], server);
    const { run, at, before: earlier = [] } = note ?? { run: "", at: 0 };
    await this.#write(key, server, isContinued ? [{ run, at }, ...earlier].slice(0, MOST_BEFORE) : []);
    return this.#localTime(isContinued ? at : undefined, server);
  }

  /** Of a moment in the store's time, early rather than late; of the present where there is none. */
  #localTime(at: number | undefined, { records }: MetServer): number {
    return this.#clock.now() - (at === undefined ? 0 : records.now() - at + CLOCK_ERROR_MS);
  }

  async #repeat(since: number, server: MetServer, namespaces: readonly FailoverSubject[]): Promise<void> {
    // What was confirmed in this turn is noted down at its end.
    await endOfTurn();
    const remedies = this.#recent.since(since);
    if (remedies === undefined) await this.#replaceStamps(namespaces, server);
    else await this.#carryOut(remedies, server);
  }

  /** Only what is on this server can be missing there. */
  async #carryOut(remedies: readonly PendingInvalidation[], server: MetServer): Promise<void> {
    const mine = remedies.filter(({ key }) => server.owns(key));
    // New stamps first: a group's stamp is replaced before the stamps of its tags are removed.
    const [removals, stamps] = [mine.filter(isRemoval), mine.filter((remedy) => !isRemoval(remedy))];
    for (const some of [stamps, removals]) {
      await Promise.all(some.map((remedy) => deliver(remedy, server.records, this.#clock)));
    }
    // The next server to take over may lack them again.
    this.#recent.add(mine);
  }

  async #replaceStamps(namespaces: readonly FailoverSubject[], { records }: MetServer): Promise<void> {
    const remedies = namespaces.map(
      ({ stampKey }): PendingInvalidation => ({
        key: stampKey,
        stampMs: Number.POSITIVE_INFINITY,
        root: stampKey,
      }),
    );
    for (const remedy of remedies) await deliver(remedy, records, this.#clock);
    this.#recent.add(remedies);
  }

  /** A store that takes no changes is as good as before: the older note only means that more is repeated one day. */
  async #renew(key: string, server: MetServer, before: ServerIdentity["before"]): Promise<void> {
    try {
      await this.#write(key, server, before);
    } catch (error) {
      if (!isRefusal(error)) throw error;
    }
  }

  #write(key: string, { records, runId }: MetServer, before: ServerIdentity["before"] = []): Promise<void> {
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
      lineage: [],
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

/** Whether something names a server and a time. */
function isMention(value: unknown): value is Pick<ServerIdentity, "run" | "at"> {
  if (typeof value !== "object" || value === null) return false;
  const { run, at }: Partial<Record<keyof ServerIdentity, unknown>> = value;
  return typeof run === "string" && typeof at === "number";
}
