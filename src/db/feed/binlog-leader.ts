// Leads over the binary log of MariaDB: receives its events, lets transactions through the gate, and proves that it is alive.
import { ConnectionError } from "../../core/errors.ts";
import {
  type BinlogEvent,
  type BinlogTable,
  type ChangedRows,
  type IntegerColumn,
  type RowImages,
  rowsOf,
} from "./binlog.ts";
import { statementKind } from "./binlog-statement.ts";
import { Gate } from "./gate.ts";
import { beatMs, type ChangeSource, type LeaderHost } from "./leader.ts";
import { MysqlCatalogue, readMysqlServer } from "./mysql-catalogue.ts";
import {
  BinlogLink,
  type LogPosition,
  type MysqlLinkOptions,
  MysqlSqlLink,
  positionNumber,
} from "./mysql-link.ts";
import { StreamLeadership } from "./stream-leadership.ts";
import { type Targets, TransactionTags } from "./transaction-tags.ts";

export interface BinlogOptions {
  readonly links: MysqlLinkOptions;
  readonly tables: readonly string[];
  /** Tests take the gate out. Default: a transaction is visible once snapshots are taken behind its commit. */
  readonly isVisible?: (snapshot: bigint, end: bigint) => boolean;
}

type Host = LeaderHost<MysqlSqlLink, MysqlCatalogue>;

export class BinlogSource implements ChangeSource<MysqlSqlLink, MysqlCatalogue> {
  readonly #options: BinlogOptions;

  constructor(options: BinlogOptions) {
    this.#options = options;
  }

  open(): Promise<MysqlSqlLink> {
    return MysqlSqlLink.open(this.#options.links);
  }

  async readCatalogue(sql: MysqlSqlLink): Promise<MysqlCatalogue> {
    return MysqlCatalogue.read(sql, await readMysqlServer(sql), this.#options.tables);
  }

  isLed(sql: MysqlSqlLink, lockKey: bigint): Promise<boolean> {
    return sql.isLocked(lockKey);
  }

  async lead(host: Host, sql: MysqlSqlLink, lockKey: bigint): Promise<boolean> {
    if (!(await sql.tryLock(lockKey))) return false;
    const link = await BinlogLink.open(this.#options.links);
    try {
      host.elected();
      await new BinlogLeadership(host, this.#options, sql, link).run();
      return true;
    } finally {
      link.close();
      host.waitFor(undefined);
    }
  }
}

/** Transactions that are prepared and not decided; beyond, the oldest are forgotten, and their commits drop everything. */
const MOST_PREPARED = 1_000;

class BinlogLeadership extends StreamLeadership<MysqlSqlLink, MysqlCatalogue, bigint> {
  readonly #link: BinlogLink;
  readonly #tables = new Map<string, BinlogTable>();
  /** By the name of the transaction. */
  readonly #prepared = new Map<string, TransactionTags>();
  #file = "";
  #current: TransactionTags | undefined;
  /** Whether a transaction is open that ends with an event of its own. */
  #isOpen = false;
  /** The schema has changed since the catalogue was read. */
  #isStale = true;
  /** Events before it may be of a schema that the catalogue does not know. */
  #rowsFrom = 0n;

  constructor(host: Host, { links, isVisible }: BinlogOptions, sql: MysqlSqlLink, link: BinlogLink) {
    const sees = isVisible ?? ((snapshot: bigint, end: bigint) => end <= snapshot);
    const gate = new Gate<bigint>((snapshot, { end }) => sees(snapshot, end));
    super(host, sql, link, gate, { stream: "the binary log", timeoutMs: links.timeoutMs });
    this.#link = link;
  }

  /** Never resolves before the feed is closed; rejects with what ended the stream. */
  async run(): Promise<void> {
    const { silentForMs } = this.host;
    // Long enough to survive a pause, short enough for a successor of a process that hangs.
    await this.sql.endWhenSilent(Math.max(10_000, 5 * silentForMs));
    const from = await this.#snapshot();
    this.#file = from.file;
    this.position = positionNumber(from);
    await this.#link.start(from, beatMs(silentForMs), (event) => this.#received(event));
    await this.refresh();
    // Everything committed before the log was followed may have been missed; the snapshot above sees all of it.
    await this.deliverAll(this.host.catalogue.names);
    this.host.counts.gap();
    for (const each of [this.sql, this.#link]) each.release();
    await this.#loop();
  }

  async #loop(): Promise<void> {
    for (;;) {
      this.requireOpen();
      const isDue = this.host.clock.now() >= this.nextBeat;
      if ((this.#isWaiting || isDue) && (await this.#look(isDue))) this.hasProgressed();
      await this.pause(this.#isWaiting);
    }
  }

  get #isWaiting(): boolean {
    return !this.gate.isEmpty || this.claim !== undefined;
  }

  async #snapshot(): Promise<LogPosition> {
    const position = await this.sql.snapshotPosition();
    if (position === undefined) throw new ConnectionError("the server no longer writes a binary log");
    return position;
  }

  /** Takes a snapshot and invalidates what it sees. Returns whether there was anything. */
  async #look(mayClaim: boolean): Promise<boolean> {
    const { clock, counts } = this.host;
    const at = clock.now();
    const snapshot = positionNumber(await this.#snapshot());
    // What is received from here on is left to the next look.
    const { position } = this;
    const visible = this.gate.visible(snapshot);
    if (visible.length > 0) {
      await this.invalidate(visible);
      const newest = Math.max(...visible.map(({ committedAt }) => committedAt));
      counts.invalidated(visible.length, (clock.now() - newest) / 1_000);
    }
    if (mayClaim) this.claim ??= { at, target: snapshot };
    return (await this.proveUpTo(position)) || visible.length > 0;
  }

  protected async refresh(): Promise<void> {
    // A change of the schema that arrives meanwhile makes it stale again.
    this.#isStale = false;
    const names = await this.host.refresh(this.sql);
    this.#rowsFrom = positionNumber(await this.#snapshot());
    if (names !== undefined) await this.deliverAll(names);
  }

  #received(event: BinlogEvent): void {
    switch (event.kind) {
      case "rotate":
        this.#file = event.file;
        this.#tables.clear();
        this.#advance(event.position);
        return;
      case "table":
        this.#tables.set(event.table.id, event.table);
        return;
      case "rows":
        this.#changed(event.id, event.rows, event.end);
        break;
      case "statement":
        this.#statement(event.schema, event.text, event.end);
        break;
      case "unknown":
        this.#transaction().isEverything = true;
        if (!this.#isOpen) this.#committed(event.end);
        break;
      case "commit":
        this.#committed(event.end);
        break;
      case "prepare":
        if (event.isDecided) this.#committed(event.end);
        else this.#preparedNow(event.branch);
    }
    this.#advance(event.end);
  }

  #changed(id: string, rows: ChangedRows | undefined, end: number): void {
    const transaction = this.#transaction();
    const table = this.#tables.get(id);
    const { catalogue, rows: withRows } = this.host;
    if (table === undefined || this.#isStale) {
      transaction.isEverything = true;
      return;
    }
    const changes = catalogue.changesOf(table);
    if (changes === undefined) return;
    const targets = rows?.change === "insert" ? changes.inserted : changes.changed;
    if (!withRows || transaction.isEverything) transaction.change(targets, undefined, undefined);
    else if (rows === undefined || this.#positionOf(end) <= this.#rowsFrom) transaction.truncate(targets);
    else changeRows(transaction, targets, rowsIn(rows, table, changes.key));
  }

  #statement(schema: string, text: string, end: number): void {
    const statement = statementKind(text);
    switch (statement.kind) {
      case "begin":
        this.#isOpen = true;
        return;
      case "commit":
        if (statement.branch !== undefined) this.#decided(statement.branch);
        this.#committed(end);
        return;
      case "rollback":
        if (statement.branch !== undefined) this.#prepared.delete(statement.branch);
        // Tables without transactions keep what was written to them.
        this.#committed(end);
        return;
      case "none":
        return;
      case "schema":
        if (!this.host.catalogue.concerns(schema, text)) return;
        this.#isStale = true;
        break;
      case "change":
    }
    // In the format of statements: nobody knows which rows.
    this.#transaction().isEverything = true;
    if (!this.#isOpen) this.#committed(end);
  }

  #transaction(): TransactionTags {
    this.#current ??= new TransactionTags(0, this.host.rows);
    return this.#current;
  }

  #preparedNow(name: string): void {
    const transaction = this.#current;
    this.#current = undefined;
    this.#isOpen = false;
    if (transaction === undefined) return;
    this.#prepared.set(name, transaction);
    const [oldest] = this.#prepared.keys();
    if (this.#prepared.size > MOST_PREPARED && oldest !== undefined) this.#prepared.delete(oldest);
  }

  /** A prepared transaction commits: what it has changed becomes visible. */
  #decided(branch: string): void {
    const prepared = this.#prepared.get(branch);
    this.#prepared.delete(branch);
    if (prepared === undefined) this.#transaction().isEverything = true;
    else this.#current = prepared;
  }

  #committed(end: number): void {
    const transaction = this.#current;
    this.#current = undefined;
    this.#isOpen = false;
    if (transaction === undefined || transaction.isEmpty) return;
    transaction.end = this.#positionOf(end);
    transaction.committedAt = this.host.clock.now();
    this.gate.add(transaction);
  }

  #positionOf(offset: number): bigint {
    return positionNumber({ file: this.#file, offset });
  }

  /** Events that a server makes up have the position 0. */
  #advance(offset: number): void {
    this.advanceTo(this.#positionOf(offset));
    this.host.reached(`${this.#file}:${offset}`);
  }
}

/** undefined: they have a type that nobody here knows. */
function rowsIn(
  rows: ChangedRows,
  table: BinlogTable,
  key: readonly IntegerColumn[],
): RowImages[] | undefined {
  try {
    return rowsOf(rows, table, key);
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

function changeRows(transaction: TransactionTags, targets: Targets, rows: RowImages[] | undefined): void {
  if (rows === undefined) transaction.truncate(targets);
  for (const { before, after } of rows ?? []) transaction.change(targets, before, after);
}
