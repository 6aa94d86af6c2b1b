// Leads over logical replication: receives the stream, lets transactions through the gate, and proves that it is alive.
import { ConfigError } from "../../core/errors.ts";
import { nodeCrypto } from "../../core/lazy-builtin.ts";
import { Catalogue, readServer, type ServerFacts } from "./catalogue.ts";
import { Gate } from "./gate.ts";
import { beatMs, type ChangeSource, catalogueMs, type LeaderHost } from "./leader.ts";
import { type LinkOptions, ReplicationLink, SqlLink } from "./link.ts";
import type { Relation, StreamMessage } from "./pgoutput.ts";
import { endOfRecords, lsnOf, lsnText } from "./pgoutput.ts";
import { Signal } from "./signal.ts";
import { type Claim, StreamLeadership } from "./stream-leadership.ts";
import { type Targets, TransactionTags, targetsOf } from "./transaction-tags.ts";
import { XidSnapshot } from "./xid-snapshot.ts";

export interface LogicalOptions {
  readonly links: LinkOptions;
  readonly tables: readonly string[];
  readonly publication: string;
  /** undefined: temporary. */
  readonly durable: string | undefined;
  /** Tests take the gate out. */
  readonly isVisible?: IsVisible;
}

type Host = LeaderHost<SqlLink, Catalogue>;

export class LogicalSource implements ChangeSource<SqlLink, Catalogue> {
  readonly #options: LogicalOptions;

  constructor(options: LogicalOptions) {
    this.#options = options;
  }

  open(): Promise<SqlLink> {
    return SqlLink.open(this.#options.links);
  }

  readCatalogue(sql: SqlLink): Promise<Catalogue> {
    return Catalogue.read(sql, this.#options.publication, this.#options.tables);
  }

  isLed(sql: SqlLink, lockKey: bigint): Promise<boolean> {
    return sql.isLocked(lockKey);
  }

  async lead(host: Host, sql: SqlLink, lockKey: bigint): Promise<boolean> {
    const server = await readServer(sql);
    const link = await ReplicationLink.open(this.#options.links);
    try {
      if (!(await link.tryLock(lockKey))) return false;
      host.elected();
      await new LogicalLeadership(host, this.#options, server, sql, link).run();
      return true;
    } finally {
      link.close();
      host.waitFor(undefined);
    }
  }
}

/** Whether snapshots taken from now on see a transaction. */
export type IsVisible = (snapshot: XidSnapshot, xid: number) => boolean;

const isVisible: IsVisible = (snapshot, xid) => snapshot.sees(xid);

/** The prefix of messages that the event trigger of `xcache db feed --sql` emits. */
const MESSAGE_PREFIX = "xcache";

const LOOK = `
SELECT pg_current_snapshot()::text AS snapshot, pg_current_wal_insert_lsn()::text AS position,
  pg_current_wal_flush_lsn()::text AS flushed,
  (extract(epoch FROM clock_timestamp()) * 1000)::text AS now`;

const WRITERS = `
SELECT count(*)::text AS count, coalesce(round(extract(epoch FROM max(clock_timestamp() - xact_start))), 0)::text AS seconds
FROM pg_stat_activity WHERE backend_xid IS NOT NULL`;

/**
 * Assigns a transaction id, so that its commit writes the log to disk: up to then nothing of it is sent. Without that, what
 * a read has logged could stay in memory for seconds.
 */
const FLUSH = "SELECT pg_current_xact_id()";

class LogicalLeadership extends StreamLeadership<SqlLink, Catalogue, XidSnapshot> {
  readonly #options: LogicalOptions;
  readonly #server: ServerFacts;
  readonly #link: ReplicationLink;
  readonly #relations = new Map<number, Relation>();
  #targets = new Map<number, Targets | undefined>();
  #current: TransactionTags | undefined;
  #confirmed = 0n;
  /** What the slot does not send: to be dropped once all of it is visible. */
  #gap: XidSnapshot | undefined;
  /** A claim whose target has not been written to disk. */
  #unflushed: Claim | undefined;

  constructor(host: Host, options: LogicalOptions, server: ServerFacts, sql: SqlLink, link: ReplicationLink) {
    const gate = new Gate<XidSnapshot>((snapshot, { xid }) =>
      (options.isVisible ?? isVisible)(snapshot, xid),
    );
    super(host, sql, link, gate, {
      stream: "the replication stream",
      timeoutMs: options.links.timeoutMs,
    });
    this.#options = options;
    this.#server = server;
    this.#link = link;
  }

  /** Never resolves before the feed is closed; rejects with what ended the stream. */
  async run(): Promise<void> {
    // Never waits for a synchronous standby.
    await this.sql.query("SET synchronous_commit = local");
    const slot = await this.#prepareSlot();
    await this.#start(slot);
    this.sql.release();
    this.#link.release();
    await this.#loop();
  }

  async #prepareSlot(): Promise<string> {
    const { durable } = this.#options;
    // Long enough to survive a pause, short enough for a successor of a process that hangs.
    await this.#link.endWhenSilent(Math.max(10_000, 5 * this.host.silentForMs));
    if (durable === undefined) {
      const name = `xcache_${nodeCrypto().randomUUID().replaceAll("-", "")}`;
      await this.#createSlot(name, true);
      return name;
    }
    const [found] = await this.sql.query(
      `SELECT plugin::text, coalesce(wal_status, '') AS wal_status, (database = current_database())::text AS here
       FROM pg_replication_slots WHERE slot_name = $1`,
      [durable],
    );
    if (found !== undefined && (found.plugin !== "pgoutput" || found.here !== "true")) {
      throw new ConfigError(
        "CONFIG_INVALID",
        `feed: the replication slot ${durable} belongs to another database or plugin`,
        { hint: "Choose another name for the durable slot." },
      );
    }
    const isLost = found?.wal_status === "lost";
    if (isLost) await this.sql.query("SELECT pg_drop_replication_slot($1)", [durable]);
    if (found === undefined || isLost) await this.#createSlot(durable, false);
    return durable;
  }

  /** Everything that was committed before the slot begins may have been missed. */
  async #createSlot(name: string, isTemporary: boolean): Promise<void> {
    let isOver = false;
    const done = new Signal(this.host.clock);
    const creating = this.#link.createSlot(name, isTemporary).finally(() => {
      isOver = true;
      done.raise();
    });
    // Rejections are seen below.
    creating.catch(() => {});
    const began = this.host.clock.now();
    for (;;) {
      await done.wait(beatMs(this.host.silentForMs), true);
      if (isOver) break;
      this.requireOpen();
      await this.#sayWhatIsWaitedFor(this.host.clock.now() - began);
    }
    const snapshotName = await creating;
    this.host.waitFor(undefined);
    await this.sql.query("BEGIN ISOLATION LEVEL REPEATABLE READ");
    await this.sql.query(`SET TRANSACTION SNAPSHOT '${snapshotName.replaceAll("'", "''")}'`);
    const [row] = await this.sql.query("SELECT pg_current_snapshot()::text AS snapshot");
    await this.sql.query("COMMIT");
    this.#gap = new XidSnapshot(String(row?.snapshot));
  }

  async #sayWhatIsWaitedFor(forMs: number): Promise<void> {
    const [row] = await this.sql.query(WRITERS);
    const seconds = Math.round(forMs / 1_000);
    this.host.waitFor(
      `the replication slot waits for ${row?.count} open writing transactions, the oldest of ${row?.seconds} s (for ${seconds} s)`,
    );
  }

  async #start(slot: string): Promise<void> {
    const hasMessages = this.#server.version >= 140_000;
    try {
      await this.#link.start(slot, this.#options.publication, hasMessages, (message) =>
        this.#received(message),
      );
    } catch (error) {
      const { code } = error as { readonly code?: unknown };
      // object_not_in_prerequisite_state: what the slot needs has been removed. The next attempt recreates it.
      if (code === "55000" && this.#options.durable !== undefined) {
        await this.sql.query("SELECT pg_drop_replication_slot($1)", [slot]);
      }
      throw error;
    }
  }

  async #loop(): Promise<void> {
    const { clock, silentForMs } = this.host;
    let nextCatalogue = clock.now() + catalogueMs(silentForMs);
    for (;;) {
      this.requireOpen();
      const isDue = clock.now() >= this.nextBeat;
      if (!this.gate.isEmpty || this.#gap !== undefined || (isDue && this.claim === undefined)) {
        if (await this.#look(isDue)) this.hasProgressed();
      }
      // With transactions in the gate only a look, which takes a new snapshot, can prove a claim.
      if (this.gate.isEmpty && (await this.proveUpTo(this.position))) this.hasProgressed();
      if (clock.now() >= nextCatalogue) {
        nextCatalogue = clock.now() + catalogueMs(silentForMs);
        await this.refresh();
      }
      const isWaiting = !this.gate.isEmpty || this.#gap !== undefined || this.claim !== undefined;
      if (this.hasPaused && this.#unflushed !== undefined && this.#unflushed === this.claim) {
        this.#unflushed = undefined;
        await this.sql.query(FLUSH);
      }
      if (this.claim !== undefined) this.#confirm(true);
      await this.pause(isWaiting);
    }
  }

  /** Takes a snapshot and invalidates what it sees. Returns whether there was anything. */
  async #look(mayClaim: boolean): Promise<boolean> {
    const { clock, counts } = this.host;
    const at = clock.now();
    const [row] = await this.sql.query(LOOK);
    const lookedAt = clock.now();
    const snapshot = new XidSnapshot(String(row?.snapshot));
    // What is received from here on is left to the next look.
    const { position } = this;
    const visible = this.gate.visible(snapshot);
    const isGapOver = this.#gap !== undefined && snapshot.covers(this.#gap);
    if (isGapOver) await this.#dropAll();
    if (visible.length > 0) {
      await this.invalidate(visible);
      const newest = Math.max(...visible.map(({ committedAt }) => committedAt));
      const lagMs = Number(row?.now) - newest + (clock.now() - lookedAt);
      counts.invalidated(visible.length, Math.max(0, lagMs) / 1_000);
    }
    if (mayClaim && this.#gap === undefined && this.claim === undefined) {
      this.claim = { at, target: endOfRecords(lsnOf(String(row?.position)), this.#server.pageBytes) };
      if (lsnOf(String(row?.flushed)) < this.claim.target) this.#unflushed = this.claim;
    }
    // What waits in the gate still was not visible when the claim was made.
    await this.proveUpTo(position);
    return visible.length > 0 || isGapOver;
  }

  /** Else a server whose other tables change would retain all of that. */
  protected override proven(): void {
    this.#confirm(true);
  }

  async #dropAll(): Promise<void> {
    await this.deliverAll(this.host.catalogue.names);
    this.host.counts.gap();
    this.#gap = undefined;
  }

  protected override async invalidate(visible: readonly TransactionTags[]): Promise<void> {
    await super.invalidate(visible);
    const { oldest } = this.gate;
    for (const { end } of visible) {
      if ((oldest === undefined || end < oldest.end) && end > this.#confirmed) this.#confirmed = end;
    }
    this.#confirm(false);
  }

  protected async refresh(): Promise<void> {
    const names = await this.host.refresh(this.sql);
    if (names === undefined) return;
    this.#targets = new Map();
    await this.deliverAll(names);
  }

  /** A temporary slot is not resumed, so its server need not wait for us: where it counts as a synchronous standby, it would. */
  #confirm(wantsReply: boolean): void {
    if (this.gate.isEmpty || this.#options.durable === undefined) this.#confirmed = this.position;
    this.#link.confirm(this.#confirmed, wantsReply);
  }

  #received(message: StreamMessage): void {
    switch (message.kind) {
      case "keepalive":
        this.#advance(message.end);
        if (message.wantsReply) this.#confirm(false);
        return;
      case "begin":
        this.#current = new TransactionTags(message.xid, this.host.rows);
        return;
      case "relation":
        this.#relations.set(message.relation.oid, message.relation);
        this.#targets.delete(message.relation.oid);
        return;
      case "change": {
        const targets = this.#targetsOf(message.relation);
        if (targets !== undefined) this.#current?.change(targets, message.before, message.after);
        return;
      }
      case "truncate":
        for (const relation of message.relations) {
          const targets = this.#targetsOf(relation);
          if (targets !== undefined) this.#current?.truncate(targets);
        }
        return;
      case "message":
        if (message.prefix === MESSAGE_PREFIX && this.#current !== undefined)
          this.#current.isEverything = true;
        return;
      case "commit":
        this.#committed(message.end, message.at);
    }
  }

  #committed(end: bigint, at: number): void {
    const transaction = this.#current;
    this.#current = undefined;
    if (transaction !== undefined && !transaction.isEmpty) {
      this.gate.add(Object.assign(transaction, { end, committedAt: at }));
    }
    this.#advance(end);
  }

  #advance(position: bigint): void {
    this.advanceTo(position);
    this.host.reached(lsnText(this.position));
  }

  /** undefined: unknown, so the transaction counts as a change of everything. */
  #targetsOf(oid: number): Targets | undefined {
    let targets = this.#targets.get(oid);
    if (targets === undefined) {
      const relation = this.#relations.get(oid);
      targets = relation && targetsOf(relation, this.host.catalogue);
      if (targets !== undefined) this.#targets.set(oid, targets);
    }
    if (targets === undefined && this.#current !== undefined) this.#current.isEverything = true;
    return targets;
  }
}
