// One server of the store: its links, its time, and what it says of itself.
import type { HostPort } from "../../core/address/address.ts";
import type { Failed } from "../../core/backend.ts";
import type { Clock, Timer } from "../../core/clock.ts";
import { connectionOf } from "../wire/key-connection.ts";
import { Connection, type ConnectionSettings } from "./connection.ts";
import { type Carrier, Link } from "./link.ts";
import { notMemcached, tooOld, unusable, withoutCas } from "./reply-error.ts";
import { nameOf } from "./ring.ts";
import { ServerClock } from "./server-clock.ts";
import { isRecent, NO_INFO, readServerInfo, type ServerInfo, type Statistics } from "./server-info.ts";

/** Where a key is. */
export interface Place {
  readonly carrier: Carrier;
  /** The present time of its server. */
  serverNow(): number;
}

export interface NodeHost {
  readonly clock: Clock;
  readonly poolSize: number;
  readonly settings: Omit<ConnectionSettings, "endpoint">;
  /** A server is met by a new connection, which nobody else uses before this resolves. */
  met(node: MemcachedNode, connection: Connection): Promise<void>;
}

interface Waiting {
  readonly run: (connection: Connection) => void;
  readonly failed: Failed;
}

export class MemcachedNode {
  readonly name: string;
  readonly time = new ServerClock();
  readonly links: readonly Link[];
  /** Reaches the server while it is still being met, too: meeting one server may need another that is just being met. */
  readonly ahead: Carrier;
  facts: ServerInfo = NO_INFO;
  readonly #host: NodeHost;
  readonly #endpoint: HostPort;
  readonly #places: readonly Place[];
  /** A connection that was greeted and is now met. */
  #greeted: Connection | undefined;
  #waiting: Waiting[] = [];
  #isTimeUsed = false;
  #look: Timer | undefined;
  #closed = false;

  constructor(endpoint: HostPort, host: NodeHost) {
    this.name = nameOf(endpoint);
    this.#endpoint = endpoint;
    this.#host = host;
    this.links = Array.from({ length: host.poolSize }, () => this.#newLink());
    this.#places = this.links.map((carrier) => ({ carrier, serverNow: () => this.now() }));
    const present = (): Connection | undefined => this.links[0]?.connection ?? this.#greeted;
    this.ahead = {
      get connection() {
        return present();
      },
      whenUp: (run, failed) => this.#whenGreeted(run, failed),
    };
  }

  /**
   * What concerns a key always travels over the same link. The library's own records share the first one, so that they
   * change in the same order for everybody.
   */
  placeOf(key: string): Place {
    const { length } = this.#places;
    return this.#places[connectionOf(key, length)] as Place;
  }

  /** The server's present time: ours as long as it has not told it. */
  now(): number {
    const now = this.#host.clock.now();
    return now + (this.time.askedAt > 0 ? this.time.low(now) : 0);
  }

  async connect(): Promise<void> {
    await Promise.all(this.links.map((link) => link.connect()));
  }

  /** Whether it has answered of late, or nothing was asked of it that it should have answered by now. */
  isAnswering(): boolean {
    const { clock, settings } = this.#host;
    const [now, patienceMs] = [clock.now(), settings.operationTimeoutMs];
    return this.links.some(
      ({ connection }) =>
        connection !== undefined &&
        (connection.provenAt > now - patienceMs || connection.awaitedSince > now - patienceMs / 2),
    );
  }

  /** Its time is looked at again now and then, while somebody uses it. */
  useTime(): void {
    this.#isTimeUsed = true;
    if (this.#look === undefined && !this.#closed && this.time.askedAt > 0) this.#lookLater();
  }

  /** By `stats`; takes in the time as well. */
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
    this.#look?.cancel();
    for (const link of this.links) link.close();
  }

  #newLink(): Link {
    const { clock, settings } = this.#host;
    return new Link({
      clock,
      operationTimeoutMs: settings.operationTimeoutMs,
      open: async (signal, closed) => {
        const connection = await Connection.open({ ...settings, endpoint: this.#endpoint }, signal, closed);
        try {
          await this.#prepare(connection);
        } catch (thrown) {
          const error = unusable(this.name, thrown);
          connection.destroy(error);
          throw error;
        } finally {
          if (this.#greeted === connection) this.#greeted = undefined;
        }
        return connection;
      },
      down: (error) => {
        for (const { failed } of this.#takeWaiting()) failed(error);
      },
    });
  }

  async #prepare(connection: Connection): Promise<void> {
    const [general, settings] = await Promise.all([
      this.statistics(connection),
      connection.statistics("settings"),
    ]);
    const facts = readServerInfo(general, settings);
    if (!general.has("version")) throw notMemcached(this.name, undefined);
    if (!isRecent(facts.version)) throw tooOld(this.name, facts.version);
    if (!facts.hasCas) throw withoutCas(this.name);
    this.facts = facts;
    connection.facts = facts;
    this.#greeted = connection;
    for (const { run } of this.#takeWaiting()) run(connection);
    await this.#host.met(this, connection);
  }

  #whenGreeted(run: (connection: Connection) => void, failed: Failed): void {
    const present = this.ahead.connection;
    if (present !== undefined) {
      run(present);
      return;
    }
    const waiting = { run, failed };
    this.#waiting.push(waiting);
    const isStillWaiting = (): boolean => {
      const at = this.#waiting.indexOf(waiting);
      if (at >= 0) this.#waiting.splice(at, 1);
      return at >= 0;
    };
    // It may have been greeted before: then it only has to be met.
    this.links[0]?.whenUp(
      (connection) => {
        if (isStillWaiting()) run(connection);
      },
      (error) => {
        if (isStillWaiting()) failed(error);
      },
    );
  }

  #takeWaiting(): readonly Waiting[] {
    const waiting = this.#waiting;
    this.#waiting = [];
    return waiting;
  }

  /** Rests when nobody asks for the time, or there is no connection. */
  #lookLater(): void {
    const { clock } = this.#host;
    this.#isTimeUsed = false;
    this.#look = clock.after(this.time.nextIn(clock.now()), () => {
      this.#look = undefined;
      const connection = this.links[0]?.connection;
      if (connection === undefined) return;
      const again = (): void => {
        if (!this.#closed && this.#isTimeUsed) this.#lookLater();
      };
      this.statistics(connection).then(again, again);
    });
  }
}
