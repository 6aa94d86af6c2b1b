// Subscribes to one sentinel for master changes and reconnects on its own.
import type { HostPort } from "../../../core/address/address.ts";
import type { Timer } from "../../../core/clock.ts";
import { ConnectionError, UnsupportedError } from "../../../core/errors.ts";
import { type Reply, ReplyError } from "../resp/reply.ts";
import { Connection, type ConnectionListener } from "../server/connection.ts";
import { KvConnection } from "../server/kv-connection.ts";
import {
  isSame,
  masterIn,
  masterInMessage,
  masterQuery,
  type SentinelSettings,
  SWITCH_CHANNEL,
} from "./query.ts";

export interface SubscriptionHost {
  /** The sentinel to connect to next. */
  nextSentinel(): HostPort;
  /** The newly subscribed sentinel names the master. */
  masterNamed(master: HostPort, by: HostPort): void;
  /** The subscribed sentinel names another master than before. */
  switched(master: HostPort, by: HostPort): void;
  /** Reports an error that no caller waits for. */
  report(error: Error): void;
}

/** How often the sentinel is queried, to notice a dead one or a missed announcement. */
const HEARTBEAT_MS = 1_000;

export class SentinelSubscription {
  readonly #settings: SentinelSettings;
  readonly #name: string;
  readonly #host: SubscriptionHost;
  readonly #link: KvConnection;
  #sentinel: HostPort | undefined;
  #master: HostPort | undefined;
  /** Whether a sentinel refused SUBSCRIBE: then only the heartbeat notices a failover. */
  #isSubscribeRefused = false;
  #heartbeat: Timer | undefined;

  constructor(settings: SentinelSettings, name: string, host: SubscriptionHost) {
    this.#settings = { ...settings, background: true };
    this.#name = name;
    this.#host = host;
    this.#link = new KvConnection({
      clock: settings.clock,
      operationTimeoutMs: settings.operationTimeoutMs,
      pauses: settings.pauses,
      open: (owner) =>
        this.#open({
          ...owner,
          pushed: (push) => this.#switched(this.#translated(masterInMessage(push, name))),
        }),
      up: () => this.#scheduleHeartbeat(),
      down: () => this.#reset(),
    });
  }

  /** The master named by the subscribed sentinel; undefined while disconnected. */
  get master(): HostPort | undefined {
    return this.#master;
  }

  /** Connects unless already connected. */
  subscribe(): void {
    this.#link.connect().catch(() => {});
  }

  /** Reconnects to the next sentinel. */
  switchSentinel(): void {
    this.#link.renew(new ConnectionError("switching to another sentinel"));
  }

  close(): void {
    this.#reset();
    this.#link.close();
  }

  async #open(listener: ConnectionListener): Promise<Connection> {
    const sentinel = this.#host.nextSentinel();
    const connection = await Connection.open({ ...this.#settings, endpoint: sentinel }, listener);
    try {
      if (connection.plain !== undefined) this.#subscribeRefused(connection.plain);
      if (!this.#isSubscribeRefused) connection.tell(["SUBSCRIBE", SWITCH_CHANNEL]);
      // Queried after subscribing, so that no switch can be missed in between.
      const answer = await connection.command(...masterQuery(this.#name));
      const master = this.#translated(masterIn(answer, sentinel, this.#name));
      this.#sentinel = sentinel;
      this.#master = master;
      this.#host.masterNamed(master, sentinel);
      return connection;
    } catch (error) {
      connection.destroy(new ConnectionError("the sentinel cannot be used", { cause: error }));
      if (error instanceof ReplyError && error.code === "NOPERM") this.#subscribeRefused(error);
      throw error;
    }
  }

  #subscribeRefused(cause: ReplyError): void {
    if (this.#isSubscribeRefused) return;
    this.#isSubscribeRefused = true;
    this.#host.report(
      new UnsupportedError(`a sentinel refuses SUBSCRIBE for master changes: ${cause.message}`, {
        hint: "It is queried every second instead. Allow SUBSCRIBE and the channel +switch-master to sentinel_username.",
        cause,
      }),
    );
  }

  #translated<T extends HostPort | undefined>(announced: T): T | HostPort {
    return announced === undefined ? announced : (this.#settings.translate?.(announced) ?? announced);
  }

  #switched(master: HostPort | undefined): void {
    const by = this.#sentinel;
    if (master === undefined || by === undefined || isSame(master, this.#master)) return;
    this.#master = master;
    this.#host.switched(master, by);
  }

  #scheduleHeartbeat(): void {
    this.#heartbeat = this.#settings.clock.after(HEARTBEAT_MS, () => this.#sendHeartbeat());
  }

  #sendHeartbeat(): void {
    this.#link.connection?.send(masterQuery(this.#name), {
      resolve: (answer) => this.#heartbeatAnswered(answer),
      reject: () => {},
    });
    this.#scheduleHeartbeat();
  }

  #heartbeatAnswered(answer: Reply): void {
    try {
      if (this.#sentinel !== undefined)
        this.#switched(this.#translated(masterIn(answer, this.#sentinel, this.#name)));
    } catch {
      // It no longer knows the master: another one may.
      this.switchSentinel();
    }
  }

  #reset(): void {
    this.#heartbeat?.cancel();
    this.#sentinel = undefined;
    this.#master = undefined;
  }
}
