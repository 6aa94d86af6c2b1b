// One server of the store: its connections, its time, CLIENT TRACKING, and how far its pushes can be trusted.
import type { Clock, Timer } from "../../../core/clock.ts";
import { ConnectionError, type XCacheError } from "../../../core/errors.ts";
import { isSameServer } from "../../../core/invalidation/failover.ts";
import { disconnected } from "../../wire/connection-error.ts";
import { keyOfBytes } from "../../wire/key-bytes.ts";
import { connectionOf } from "../../wire/pool.ts";
import type { Reply } from "../resp/reply.ts";
import {
  type Answer,
  Connection,
  type ConnectionSettings,
  type Endpoint,
  type UnansweredRead,
  type UnsentCommand,
} from "./connection.ts";
import { hasOtherData, inCluster, notMaster } from "./connection-error.ts";
import { KvConnection } from "./kv-connection.ts";
import { endFormer, prepare } from "./preparation.ts";
import type { Restrictions } from "./restrictions.ts";
import { SeparateConnections } from "./separate-connections.ts";
import { type ClockReading, clockReading, ServerClock } from "./server-clock.ts";
import { readServerInfo, type ServerInfo } from "./server-info.ts";

export interface NodeHost {
  readonly clock: Clock;
  readonly poolSize: number;
  readonly settings: Omit<ConnectionSettings, "endpoint">;
  /** The address is that of one server: a node of a cluster is refused. */
  readonly isAlone?: boolean;
  /** Whether most reads are watched: then the server tracks all keys but those declined. */
  readonly watchesMost: boolean;
  /**
   * Called on every (re)connect; no command uses the connection before this resolves. `setBack`: the server's clock was set
   * back, and its new time is not used before this resolves.
   */
  onServer(node: KvNode, connection: Connection, setBack?: ClockReading): Promise<void>;
  /** The server reported a change of a key; undefined: any key may have changed. */
  changed(key: string | undefined): void;
  /** A connection is ready. */
  up?(): void;
  down(node: KvNode, error: XCacheError): void;
  readonly restrictions: Restrictions;
  /** Reports an error that no caller waits for. */
  report(error: Error): void;
}

/** How long pushes are trusted after the latest answered command was sent. */
const TRUST_MS = 1_000;
/** How often an idle connection is pinged while its pushes are relied on. */
const HEARTBEAT_MS = 300;
/** How often the server's time is read. */
const TIME_EVERY_MS = 10_000;
/** How often a server in use is asked whether it is the master still: it may keep its connections when it no longer is. */
const ROLE_EVERY_MS = 1_000;

export class KvNode {
  info: ServerInfo = readServerInfo(undefined);
  readonly time = new ServerClock();
  /** For scans and other background work. */
  readonly separate: SeparateConnections;
  /** When the latest answered command of an earlier connection was sent; 0 for none. */
  lastProvenAt = 0;
  readonly #host: NodeHost;
  readonly #where: () => Endpoint | Promise<Endpoint>;
  readonly #links: readonly KvConnection[];
  #isReliedOn = false;
  #heartbeat: Timer | undefined;
  /** When it last was or was asked whether it is the master. */
  #roleAskedAt = 0;
  #closed = false;

  constructor(where: () => Endpoint | Promise<Endpoint>, host: NodeHost) {
    this.#host = host;
    this.#where = where;
    this.separate = new SeparateConnections(this, where, host.settings);
    this.#links = Array.from({ length: host.poolSize }, () => this.#newLink());
  }

  /**
   * All commands for a key go over the same connection. Stamps share the first one, so that every process sees them change
   * in the same order.
   */
  link(key: string): KvConnection {
    const { length } = this.#links;
    return this.#links[connectionOf(key, length)] as KvConnection;
  }

  /** Whether the server pushes changes on every connection. */
  get tracks(): boolean {
    return this.#links.every(({ connection }) => connection?.isTracked === true);
  }

  /** The store was disconnected, or the server has left its cluster. */
  get isClosed(): boolean {
    return this.#closed;
  }

  get links(): readonly KvConnection[] {
    return this.#links;
  }

  async connect(): Promise<void> {
    await Promise.all(this.#links.map((link) => link.connect()));
  }

  /**
   * Identifies the connection that pushes changes of what was read over it; 0 while it cannot be trusted. `isProven`: it is
   * known to have answered within the last second.
   */
  epochOf({ connection }: KvConnection, isProven = false): number {
    if (isProven && connection?.isTracked === true) return connection.id;
    this.#rely();
    if (connection?.isTracked !== true) return 0;
    return this.#host.clock.now() - connection.provenAt < TRUST_MS ? connection.id : 0;
  }

  /** Until when every change of what was read is known to have been pushed; 0 if the server does not push. */
  trustedUntil(): number {
    this.#rely();
    let provenAt = Number.POSITIVE_INFINITY;
    for (const { connection } of this.#links) {
      if (connection?.isTracked !== true) return 0;
      provenAt = Math.min(provenAt, connection.provenAt);
    }
    return provenAt + TRUST_MS;
  }

  /** Keeps the heartbeat running: its pushes, or its time, are relied on. */
  #rely(): void {
    this.#isReliedOn = true;
    if (this.#heartbeat === undefined) this.#beat();
  }

  /** Whether it has answered within `patienceMs`, or owes no reply that should have arrived by now. */
  isAnswering(now: number, patienceMs: number): boolean {
    return this.#links.some(
      ({ connection }) =>
        connection !== undefined &&
        (connection.provenAt > now - patienceMs || connection.awaitedSince > now - patienceMs / 2),
    );
  }

  /** See Connection. */
  isTransferring(now: number): boolean {
    return this.#links.some(({ connection }) => connection?.isTransferring(now) === true);
  }

  /** Drops every connection and opens new ones. Separate ones are not opened again. */
  renew(reason: XCacheError): void {
    this.separate.end(reason);
    for (const link of this.#links) link.renew(reason);
  }

  close(): void {
    this.#closed = true;
    this.#heartbeat?.cancel();
    for (const link of this.#links) link.close();
    this.separate.end(disconnected());
  }

  #newLink(): KvConnection {
    const { clock, settings } = this.#host;
    const { operationTimeoutMs } = settings;
    /** Lost connections of this link with changes that the server may still execute. */
    const former: Connection[] = [];
    const unanswered = (reads: readonly UnansweredRead[]): void =>
      link.readAgain(reads, clock.now(), operationTimeoutMs);
    const unsent = (commands: readonly UnsentCommand[], reason: XCacheError): void =>
      link.sendUnsent(commands, reason, clock.now(), operationTimeoutMs);
    const link: KvConnection = new KvConnection({
      clock,
      operationTimeoutMs,
      pauses: settings.pauses,
      open: async (owner) => {
        const endpoint = await this.#where();
        let opened: Connection | undefined;
        const pushed = (push: readonly Reply[]): void => this.#pushed(push, opened);
        const connection = await Connection.open(
          { ...settings, endpoint },
          { ...owner, pushed, unanswered, unsent },
        );
        opened = connection;
        try {
          await this.#prepare(connection, link, former);
        } catch (error) {
          connection.destroy(error as XCacheError);
          throw error;
        }
        return connection;
      },
      up: () => {
        if (link.connection !== undefined) link.connection.isInUse = true;
        this.#host.up?.();
      },
      down: (error, lost) => {
        if (lost !== undefined) this.lastProvenAt = Math.max(this.lastProvenAt, lost.provenAt);
        if (lost?.leftChanges === true) former.push(lost);
        this.#host.changed(undefined);
        this.#host.down(this, error);
      },
    });
    return link;
  }

  async #prepare(connection: Connection, link: KvConnection, former: Connection[]): Promise<void> {
    const { clock, restrictions, watchesMost } = this.#host;
    const sentAt = clock.now();
    const known = this.info;
    const probes = link === this.#links[0];
    const { facts, time } = await prepare(connection, { clock, restrictions, watchesMost, probes });
    if (!facts.isMaster) throw notMaster(connection.name);
    if (facts.isClusterNode && this.#host.isAlone) throw inCluster(connection.endpoint);
    const { runId: before } = this.info;
    this.info = isOvertaken(facts, this.info, known) ? this.info : facts;
    this.#roleAskedAt = sentAt;
    connection.runId = facts.runId;
    await endFormer(connection, former, restrictions);
    if (before !== undefined && before !== facts.runId) this.#leaveFormer(connection, link);
    await this.#take(time, (setBack) => this.#host.onServer(this, connection, setBack));
  }

  /** Uses a new reading of the server's time, after `check` where the clock was set back. */
  async #take(
    reading: ClockReading | undefined,
    check: (setBack: ClockReading | undefined) => Promise<void>,
  ): Promise<void> {
    if (reading === undefined) return check(undefined);
    const isSetBack = this.time.isSetBack(reading);
    const hasLeapt = this.time.hasLeapt(reading);
    if (!isSetBack) this.time.take(reading);
    // Near copies expire by the former time.
    if (hasLeapt) this.#host.changed(undefined);
    await check(isSetBack ? reading : undefined);
    if (!isSetBack) return;
    this.#host.changed(undefined);
    this.time.take(reading);
  }

  /** Connections to the former server are renewed: an invalidation it still acknowledged would be lost. */
  #leaveFormer(connection: Connection, link: KvConnection): void {
    const reason = new ConnectionError(`${connection.name} has taken over`);
    this.separate.end(reason);
    for (const other of this.#links) if (other !== link) other.renew(reason);
  }

  #pushed(push: readonly Reply[], connection: Connection | undefined): void {
    if (String(push[0]) !== "invalidate") return;
    const keys = push[1];
    if (isListOfKeys(keys)) for (const key of keys) this.#host.changed(keyOfBytes(key));
    else if (keys !== null) throw new Error("an invalidation push without a list of keys");
    else {
      this.#host.changed(undefined);
      if (connection !== undefined) this.#emptied(connection);
    }
  }

  /** The data of the server was emptied: by FLUSHALL, or because it is a replica now and takes over another server's data. */
  #emptied(connection: Connection): void {
    if (!connection.isInUse) connection.destroy(hasOtherData(connection.name));
    else if (this.info.history !== undefined) connection.sendDoubting(ROLE, this.#roleOf(connection));
  }

  /** Gives up the server unless it answers that it has been the master all the time. */
  #roleOf(connection: Connection): Answer {
    const { runId, history: known } = this.info;
    return {
      resolve: (info) => {
        const { isMaster, history } = readServerInfo(info);
        if (!connection.isOpen) return;
        if (isMaster && isSameServer({ runId, history: known }, { runId, history }))
          this.info = { ...this.info, history };
        else this.renew(hasOtherData(connection.name));
      },
      reject: () => {
        if (connection.isOpen) this.renew(hasOtherData(connection.name));
      },
    };
  }

  /** Stops when the pushes were not relied on since the last beat. */
  #beat(): void {
    this.#heartbeat = undefined;
    if (this.#closed || !this.#isReliedOn) return;
    this.#isReliedOn = false;
    const now = this.#host.clock.now();
    const asksRole = this.info.history !== undefined && now - this.#roleAskedAt >= ROLE_EVERY_MS;
    if (asksRole) this.#roleAskedAt = now;
    for (const { connection } of this.#links) {
      if (connection === undefined) continue;
      if (asksRole) connection.send(ROLE, this.#roleOf(connection));
      if (now - this.time.setAt > TIME_EVERY_MS) this.#askTime(connection, now);
      else if (connection.isTracked && now - connection.provenAt > HEARTBEAT_MS / 2)
        connection.send(["PING"], IGNORED);
    }
    this.#heartbeat = this.#host.clock.after(HEARTBEAT_MS, () => this.#beat());
  }

  #askTime(connection: Connection, sentAt: number): void {
    const { clock, report } = this.#host;
    const check = async (setBack: ClockReading | undefined): Promise<void> => {
      if (setBack !== undefined) await this.#host.onServer(this, connection, setBack);
    };
    connection.send(["TIME"], {
      resolve: (answer) => {
        // Asked again with the next heartbeat if the check fails.
        this.#take(clockReading(answer, sentAt, clock.now()), check).catch(report);
      },
      reject: () => {},
    });
  }
}

const isListOfKeys = (keys: Reply | undefined): keys is readonly Buffer[] =>
  Array.isArray(keys) && keys.every((key) => Buffer.isBuffer(key));

const ROLE = ["INFO", "replication"];
const IGNORED = { resolve: () => {}, reject: () => {} };

/**
 * Whether another connection, asked at the same time, has reported a later state of the same history. Compared with that
 * one, the server would seem to have lost writes.
 */
function isOvertaken(facts: ServerInfo, latest: ServerInfo, known: ServerInfo): boolean {
  const isLater = (one: ServerInfo, other: ServerInfo): boolean =>
    one.runId === other.runId &&
    one.history?.id === other.history?.id &&
    (one.history?.offset ?? 0) > (other.history?.offset ?? 0);
  return isLater(latest, facts) && !isLater(known, facts);
}
