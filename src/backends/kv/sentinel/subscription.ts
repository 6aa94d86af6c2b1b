// Listens to one sentinel at a time: it tells when another server becomes the master. A lost ear is replaced by itself.
import type { HostPort } from "../../../core/address/address.ts";
import type { Timer } from "../../../core/clock.ts";
import { ConnectionError, UnsupportedError } from "../../../core/errors.ts";
import { type Reply, ReplyError } from "../resp/reply.ts";
import { Connection, type ConnectionListener } from "../server/connection.ts";
import { Link } from "../server/link.ts";
import { isSame, masterIn, masterInMessage, masterQuery, type SentinelSettings, SWITCHES } from "./query.ts";

export interface SubscriptionHost {
  /** The sentinel to listen to next. */
  next(): HostPort;
  /** The sentinel just begun to listen to names the master. */
  named(master: HostPort, by: HostPort): void;
  /** A sentinel listened to now names another master than before. */
  switched(master: HostPort, by: HostPort): void;
  /** Tells of something that no caller waits for. */
  report(error: Error): void;
}

/** How often the sentinel is asked whether it is still there and of the same mind. */
const HEARTBEAT_MS = 1_000;

export class SentinelSubscription {
  readonly #settings: SentinelSettings;
  readonly #name: string;
  readonly #host: SubscriptionHost;
  readonly #link: Link;
  #sentinel: HostPort | undefined;
  #master: HostPort | undefined;
  /** Whether a sentinel forbade to subscribe: then the heartbeat has to do. */
  #isDeaf = false;
  #heartbeat: Timer | undefined;

  constructor(settings: SentinelSettings, name: string, host: SubscriptionHost) {
    this.#settings = { ...settings, background: true };
    this.#name = name;
    this.#host = host;
    this.#link = new Link({
      clock: settings.clock,
      operationTimeoutMs: settings.operationTimeoutMs,
      open: (listener) => this.#open(listener),
      pushed: (push) => this.#switched(masterInMessage(push, name)),
      up: () => this.#beatLater(),
      down: () => this.#silence(),
    });
  }

  /** The master that the sentinel listened to names; undefined while none is. */
  get master(): HostPort | undefined {
    return this.#master;
  }

  /** Begins to listen, unless it does. */
  listen(): void {
    this.#link.connect().catch(() => {});
  }

  /** Turns to another sentinel. */
  turn(): void {
    this.#link.renew(new ConnectionError("another sentinel knows better"));
  }

  close(): void {
    this.#silence();
    this.#link.close();
  }

  async #open(listener: ConnectionListener): Promise<Connection> {
    const sentinel = this.#host.next();
    const connection = await Connection.open({ ...this.#settings, endpoint: sentinel }, listener);
    try {
      if (!this.#isDeaf) connection.tell(["SUBSCRIBE", SWITCHES]);
      // Asked after the subscription, so that no switch can be missed in between.
      const answer = await connection.command(...masterQuery(this.#name));
      const master = masterIn(answer, sentinel, this.#name);
      this.#sentinel = sentinel;
      this.#master = master;
      this.#host.named(master, sentinel);
      return connection;
    } catch (thrown) {
      connection.destroy(new ConnectionError("the sentinel is of no use", { cause: thrown }));
      if (thrown instanceof ReplyError && thrown.code === "NOPERM") this.#goDeaf(thrown);
      throw thrown;
    }
  }

  #goDeaf(cause: ReplyError): void {
    if (this.#isDeaf) return;
    this.#isDeaf = true;
    this.#host.report(
      new UnsupportedError(`a sentinel does not let us listen for a new master: ${cause.message}`, {
        hint: "It is asked every second instead. Allow SUBSCRIBE and the channel +switch-master to sentinel_username.",
        cause,
      }),
    );
  }

  #switched(master: HostPort | undefined): void {
    const by = this.#sentinel;
    if (master === undefined || by === undefined || isSame(master, this.#master)) return;
    this.#master = master;
    this.#host.switched(master, by);
  }

  #beatLater(): void {
    this.#heartbeat = this.#settings.clock.after(HEARTBEAT_MS, () => this.#beat());
  }

  #beat(): void {
    this.#link.connection?.send(masterQuery(this.#name), {
      resolve: (answer) => this.#hear(answer),
      reject: () => {},
    });
    this.#beatLater();
  }

  #hear(answer: Reply): void {
    try {
      if (this.#sentinel !== undefined) this.#switched(masterIn(answer, this.#sentinel, this.#name));
    } catch {
      // It knows the master no more: another one may.
      this.turn();
    }
  }

  /** Nobody is listened to. */
  #silence(): void {
    this.#heartbeat?.cancel();
    this.#sentinel = undefined;
    this.#master = undefined;
  }
}
