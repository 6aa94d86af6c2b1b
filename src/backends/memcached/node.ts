// One server of the store: its connections, its time, and what it reports about itself.
import { type HostPort, nameOf } from "../../core/address/address.ts";
import type { Failed } from "../../core/backend.ts";
import type { Clock, Timer } from "../../core/clock.ts";
import type { XCacheError } from "../../core/errors.ts";
import { connectionOf } from "../wire/pool.ts";
import { ReconnectingConnection } from "../wire/reconnecting.ts";
import { Connection, type ConnectionSettings } from "./connection.ts";
import type { UnansweredRead } from "./pending-command.ts";
import { RepeatedRead } from "./read-answer.ts";
import { notMemcached, tooOld, unusable, withoutCas } from "./reply-error.ts";
import { ServerClock } from "./server-clock.ts";
import { isRecent, NO_INFO, readServerInfo, type ServerInfo, type Statistics } from "./server-info.ts";

/** Where a call gets a connection from. */
export type ConnectionSource = Pick<ReconnectingConnection<Connection>, "connection" | "whenUp">;

export interface KeyLocation {
  readonly source: ConnectionSource;
  /** The present time of the key's server. */
  serverNow(): number;
}

export interface NodeHost {
  readonly clock: Clock;
  readonly poolSize: number;
  readonly settings: Omit<ConnectionSettings, "endpoint">;
  /** Called on every (re)connect; no call uses the connection before this resolves. */
  onServer(node: MemcachedNode, connection: Connection): Promise<void>;
  /** A connection is ready. */
  up?(): void;
}

interface WaitingCall {
  readonly run: (connection: Connection) => void;
  readonly failed: Failed;
}

export function overConnection<T>(
  source: ConnectionSource,
  work: (connection: Connection) => Promise<T>,
): Promise<T> {
  return new Promise((resolve, reject) => {
    source.whenUp((connection) => work(connection).then(resolve, reject), reject);
  });
}

export class MemcachedNode {
  readonly name: string;
  readonly time = new ServerClock();
  readonly links: readonly ReconnectingConnection<Connection>[];
  /** Also gives out a connection on which `onServer` is still running: that of one server may need another server. */
  readonly ahead: ConnectionSource;
  info: ServerInfo = NO_INFO;
  readonly #host: NodeHost;
  readonly #endpoint: HostPort;
  readonly #locations: readonly KeyLocation[];
  /** A connection on which `onServer` is running. */
  #preparing: Connection | undefined;
  /** Calls of `ahead`. */
  #waiting: WaitingCall[] = [];
  #isTimeUsed = false;
  #timeTimer: Timer | undefined;
  #closed = false;

  constructor(endpoint: HostPort, host: NodeHost) {
    this.name = nameOf(endpoint);
    this.#endpoint = endpoint;
    this.#host = host;
    this.links = Array.from({ length: host.poolSize }, () => this.#newLink());
    this.#locations = this.links.map((source) => ({ source, serverNow: () => this.now() }));
    const current = (): Connection | undefined => this.links[0]?.connection ?? this.#preparing;
    this.ahead = {
      get connection() {
        return current();
      },
      whenUp: (run, failed) => this.#whenPreparing(run, failed),
    };
  }

  /**
   * All commands for a key go over the same connection. The library's own records share the first one, so that every process
   * sees them change in the same order.
   */
  locate(key: string): KeyLocation {
    const { length } = this.#locations;
    return this.#locations[connectionOf(key, length)] as KeyLocation;
  }

  /** The server's present time; the local time until it is known. */
  now(): number {
    const now = this.#host.clock.now();
    return now + (this.time.askedAt > 0 ? this.time.low(now) : 0);
  }

  async connect(): Promise<void> {
    await Promise.all(
      // A server that keeps failing is retried in the background: waiting for it would only delay the caller.
      this.links.map((link) => (link.isUnreachable ? Promise.reject(link.lastError) : link.connect())),
    );
  }

  /** Whether it has answered recently, or owes no reply that should have arrived by now. */
  isAnswering(): boolean {
    const { clock, settings } = this.#host;
    const [now, patienceMs] = [clock.now(), settings.operationTimeoutMs];
    return this.links.some(
      ({ connection }) =>
        connection !== undefined &&
        (connection.provenAt > now - patienceMs || connection.awaitedSince > now - patienceMs / 2),
    );
  }

  /** Keeps the estimate of the server's time fresh for a while. */
  useTime(): void {
    this.#isTimeUsed = true;
    if (this.#timeTimer === undefined && !this.#closed && this.time.askedAt > 0) this.#askTimeLater();
  }

  /** By `stats`, which also tells the server's time. */
  async statistics(connection: Connection): Promise<Statistics> {
    const { clock } = this.#host;
    const sentAt = clock.now();
    const statistics = await connection.statistics();
    const seconds = Number(statistics.get("time"));
    if (seconds > 0) this.time.take(seconds, sentAt, clock.now());
    return statistics;
  }

  close(): void {
    this.#closed = true;
    this.#timeTimer?.cancel();
    for (const link of this.links) link.close();
  }

  #newLink(): ReconnectingConnection<Connection> {
    const { clock, settings } = this.#host;
    const { operationTimeoutMs } = settings;
    const link: ReconnectingConnection<Connection> = new ReconnectingConnection({
      clock,
      operationTimeoutMs,
      open: async (owner) => {
        const connection = await Connection.open({ ...settings, endpoint: this.#endpoint }, owner);
        try {
          await this.#prepare(connection);
        } catch (thrown) {
          const error = unusable(this.name, thrown);
          connection.destroy(error);
          throw error;
        } finally {
          if (this.#preparing === connection) this.#preparing = undefined;
        }
        return connection;
      },
      up: () => {
        if (link.connection !== undefined)
          link.connection.unanswered = (reads, reason) => this.#readAgain(link, reads, reason);
        this.#host.up?.();
      },
      down: (error) => {
        for (const { failed } of this.#takeWaiting()) failed(error);
      },
    });
    return link;
  }

  /** Within their deadlines. */
  #readAgain(
    link: ReconnectingConnection<Connection>,
    reads: readonly UnansweredRead[],
    reason: XCacheError,
  ): void {
    const { clock, settings } = this.#host;
    const now = clock.now();
    for (const { key, answer, sentAt } of reads) {
      const again =
        answer instanceof RepeatedRead
          ? answer
          : new RepeatedRead(answer, (sentAt || now) + settings.operationTimeoutMs);
      if (again.due <= now) answer.failed(reason);
      else
        link.whenUp(
          (connection) => connection.read(key, again),
          (error) => answer.failed(error),
          again.due,
        );
    }
  }

  async #prepare(connection: Connection): Promise<void> {
    const [general, settings] = await Promise.all([
      this.statistics(connection),
      connection.statistics("settings"),
    ]);
    const info = readServerInfo(general, settings);
    if (!general.has("version")) throw notMemcached(this.name, undefined);
    if (!isRecent(info.version)) throw tooOld(this.name, info.version);
    if (!info.hasCas) throw withoutCas(this.name);
    this.info = info;
    connection.info = info;
    this.#preparing = connection;
    for (const { run } of this.#takeWaiting()) run(connection);
    await this.#host.onServer(this, connection);
  }

  #whenPreparing(run: (connection: Connection) => void, failed: Failed): void {
    const current = this.ahead.connection;
    if (current !== undefined) {
      run(current);
      return;
    }
    const call = { run, failed };
    this.#waiting.push(call);
    const isStillWaiting = (): boolean => {
      const at = this.#waiting.indexOf(call);
      if (at >= 0) this.#waiting.splice(at, 1);
      return at >= 0;
    };
    // Starts an attempt, and ends the wait if no preparation is seen before the connection is up or out of reach.
    this.links[0]?.whenUp(
      (connection) => {
        if (isStillWaiting()) run(connection);
      },
      (error) => {
        if (isStillWaiting()) failed(error);
      },
    );
  }

  #takeWaiting(): readonly WaitingCall[] {
    const waiting = this.#waiting;
    this.#waiting = [];
    return waiting;
  }

  /** Stops when the time is not used any more, or there is no connection. */
  #askTimeLater(): void {
    const { clock } = this.#host;
    this.#isTimeUsed = false;
    this.#timeTimer = clock.after(this.time.nextIn(clock.now()), () => {
      this.#timeTimer = undefined;
      const connection = this.links[0]?.connection;
      if (connection === undefined) return;
      const again = (): void => {
        if (!this.#closed && this.#isTimeUsed) this.#askTimeLater();
      };
      this.statistics(connection).then(again, again);
    });
  }
}
