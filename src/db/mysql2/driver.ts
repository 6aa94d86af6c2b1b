// The tracker's view of a connection of mysql2, from its commands and from what the server answers to them.
import type { BypassListener, ConnectionDriver, TransactionStatus } from "../../core/db-session.ts";
import type { Command, CommandClass, MysqlConnection, Packet, PacketClass } from "./library.ts";
import {
  isForNextTransaction,
  isRefusedBy,
  isRolledBackBy,
  isWithoutEscapes,
  statusIn,
} from "./server-status.ts";

const ERROR = 0xff;
const OK = 0;

/** The classes of the library that answers are made with, as they were seen at work. */
export interface Classes {
  text?: CommandClass;
  binary?: CommandClass;
  packet?: PacketClass;
}

/** By a function that all connections of one copy of the library share. */
const classesOf = new WeakMap<object, Classes>();

function knownClasses(connection: MysqlConnection): Classes {
  const library = (connection.constructor as { readonly createQuery?: object }).createQuery ?? connection;
  const classes = classesOf.get(library) ?? {};
  classesOf.set(library, classes);
  return classes;
}

export class MysqlDriver implements ConnectionDriver {
  readonly dialect = "mysql";
  readonly database: string;
  readonly classes: Classes;
  /** How many statements of its users have not returned. */
  unfinished = 0;
  readonly #connection: MysqlConnection;
  /** undefined: not known, since an error does not tell. */
  #flags: number | undefined;
  #isForNext = false;
  #isOwn = false;
  #recorded: Buffer[] | undefined;
  #pending = 0;
  #isLost = false;
  #waiting: ((isAnswered: boolean) => void)[] = [];
  readonly #unanswered = new Set<(error: Error) => void>();
  #listener: BypassListener | undefined;
  readonly #settingsChanged: () => void;

  constructor(connection: MysqlConnection, settingsChanged: () => void) {
    const { host, port, socketPath } = connection.config;
    this.#connection = connection;
    this.classes = knownClasses(connection);
    this.#settingsChanged = settingsChanged;
    this.database = socketPath ?? `${host}:${port}`;
    const { addCommand } = connection;
    connection.addCommand = (command) => {
      this.#watch(command);
      return addCommand.call(connection, command);
    };
    connection.stream.once("close", () => this.#lost());
  }

  onBypass(listener: BypassListener): void {
    this.#listener = listener;
  }

  status(): TransactionStatus {
    return this.#flags === undefined || this.#isForNext ? "open" : statusIn(this.#flags);
  }

  async ready(): Promise<void> {
    if (this.#flags !== undefined || !this.isUsable()) return;
    // An error is that of the statement which follows.
    await this.send((done) => this.#connection.ping(done)).catch(() => {});
  }

  get isWithoutEscapes(): boolean {
    return isWithoutEscapes(this.#flags ?? 0);
  }

  isUsable(): boolean {
    const { _closing, _fatalError, _protocolError } = this.#connection;
    return !this.#isLost && _closing !== true && !_fatalError && !_protocolError;
  }

  isRefusal(error: unknown): boolean {
    const { errno, sqlState, fatal } = (error ?? {}) as Record<string, unknown>;
    return typeof errno === "number" && typeof sqlState === "string" && fatal !== true && isRefusedBy(errno);
  }

  isRollback(error: unknown): boolean {
    return isRolledBackBy((error as { readonly errno: number }).errno);
  }

  answered(): Promise<boolean> {
    if (!this.isUsable()) return Promise.resolve(false);
    if (this.#pending === 0) return Promise.resolve(true);
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
    });
  }

  async query(text: string): Promise<readonly Readonly<Record<string, unknown>>[]> {
    // Whatever the application has configured.
    const options = {
      sql: text,
      rowsAsArray: false,
      nestTables: false,
      typeCast: true,
      namedPlaceholders: false,
    };
    const [rows] = await this.send((done) => this.#connection.query(options, undefined, done));
    return rows as Readonly<Record<string, unknown>>[];
  }

  /** Sends a command of the tracker, which is not reported. Resolves to what its callback gets. */
  send(begin: (done: (error: unknown, ...result: unknown[]) => void) => void): Promise<unknown[]> {
    return new Promise((resolve, reject) => {
      const settle = (error: unknown, ...result: unknown[]): void => {
        this.#unanswered.delete(settle);
        if (error) reject(error);
        else resolve(result);
      };
      this.#unanswered.add(settle);
      try {
        this.own(() => begin(settle));
      } catch (error) {
        settle(error);
      }
    });
  }

  /** Commands that are added during the call are the tracker's, which are not reported. */
  own<Result>(send: () => Result): Result {
    const outer = this.#isOwn;
    this.#isOwn = true;
    try {
      return send();
    } finally {
      this.#isOwn = outer;
    }
  }

  /** The packets of the statement that `send` adds. */
  recording<Result>(send: () => Result): { readonly result: Result; readonly packets: readonly Buffer[] } {
    const packets: Buffer[] = [];
    this.#recorded = packets;
    try {
      return { result: send(), packets };
    } finally {
      this.#recorded = undefined;
    }
  }

  #watch(command: Command): void {
    const { name } = command.constructor;
    if (name === "ClientHandshake") return;
    const isStatement = "resultsetHeader" in command;
    const packets = isStatement ? this.#recorded : undefined;
    if (isStatement) {
      const kind = "buildParserFromFields" in command ? "binary" : "text";
      this.classes[kind] ??= command.constructor as CommandClass;
      this.#report(command, this.#isOwn);
    }
    const { execute } = command;
    command.execute = (packet, connection) => {
      if (packet !== undefined) {
        this.classes.packet ??= packet.constructor as PacketClass;
        this.#hear(command, packet, isStatement || name === "Prepare");
        packets?.push(copyOf(packet));
      }
      const isOver = execute.call(command, packet, connection);
      if (isOver) this.#over(name);
      return isOver;
    };
    this.#pending++;
  }

  #over(name: string): void {
    this.#pending--;
    if (name === "ResetConnection" || name === "ChangeUser") this.#reset();
    if (this.#pending === 0) this.#wake(true);
  }

  #hear(command: Command, packet: Packet, isStatement: boolean): void {
    const { buffer, offset } = packet;
    if (buffer[offset] === ERROR) this.#flags = undefined;
    else if (packet.isEOF()) this.#flags = buffer.readUInt16LE(offset + 3);
    else if (buffer[offset] === OK) {
      const { next, resultsetHeader, infileOk } = command;
      const isOk = !isStatement || (next !== undefined && (next === resultsetHeader || next === infileOk));
      if (isOk) this.#flags = flagsOf(packet);
    }
  }

  /** Reports the end of a statement before its user hears of it. */
  #report(command: Command, isOwn: boolean): void {
    let isReported = false;
    const report = (error: unknown): void => {
      if (isReported) return;
      isReported = true;
      const text = command.statement?.query ?? command.sql;
      this.#isForNext = text !== undefined && isForNextTransaction(text);
      if (isOwn) return;
      // Never rejects, and reads of this process wait for it.
      this.#listener?.(this.isWithoutEscapes ? undefined : text, error ? { error } : undefined).catch(
        () => {},
      );
    };
    const { onResult } = command;
    if (onResult === undefined) {
      command.once("error", report);
      command.once("end", () => report(undefined));
      return;
    }
    command.onResult = (error, ...result) => {
      report(error);
      onResult.call(command, error, ...result);
    };
  }

  /** The session was made new: its transaction is rolled back. */
  #reset(): void {
    this.#settingsChanged();
    this.#listener?.("ROLLBACK", undefined).catch(() => {});
  }

  #lost(): void {
    this.#isLost = true;
    this.#wake(false);
    // The library leaves the commands of a connection unanswered that its user closes.
    setImmediate(() => {
      for (const settle of this.#unanswered)
        settle(new Error("the connection was closed during a statement"));
    });
  }

  #wake(isAnswered: boolean): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve(isAnswered);
  }
}

/** With its own length in place of the header: a packet may have been put together from several. */
function copyOf({ buffer, start, end }: Packet): Buffer {
  const copy = Buffer.from(buffer.subarray(start, end));
  copy.writeUInt32LE(copy.length);
  return copy;
}

/** How many bytes follow the first one of a number. */
const WIDTHS: ReadonlyMap<number, number> = new Map([
  [0xfc, 2],
  [0xfd, 3],
  [0xfe, 8],
]);

/** The status in an OK packet, after two numbers of varying width. */
function flagsOf({ buffer, offset }: Packet): number {
  let at = offset + 1;
  for (let number = 0; number < 2; number++) at += 1 + (WIDTHS.get(buffer[at] ?? 0) ?? 0);
  return buffer.readUInt16LE(at);
}
