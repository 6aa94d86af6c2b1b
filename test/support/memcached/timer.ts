// Watches how late a server's seconds begin. By as much another process may serve an entry too long (docs/guide/memcached.md).
import { connect } from "node:net";

/** How long a second of the server takes: its timer is rearmed when it has fired, a millisecond late. */
const SECOND_MS = 1_001;
/** What the estimate of the server's time allows for. */
const ALLOWED_MS = 4;

export interface WatchedTimers extends Disposable {
  /** By how much seconds began later than that in all, at the server where it was most. */
  readonly lateMs: number;
}

export function watchTimers(servers: readonly { readonly port: number }[]): WatchedTimers {
  const timers = servers.map(({ port }) => new WatchedTimer(port));
  return {
    get lateMs() {
      return Math.max(...timers.map((timer) => timer.lateMs));
    },
    [Symbol.dispose]: () => {
      for (const timer of timers) timer.stop();
    },
  };
}

class WatchedTimer {
  lateMs = 0;
  readonly #socket;
  #second = "";
  /** When the present question was sent, and the last one that was answered with the present second. */
  #asked = 0;
  #seen = 0;
  /** Before this the present second cannot have begun. */
  #earliest = Number.POSITIVE_INFINITY;
  #reply = "";

  constructor(port: number) {
    this.#socket = connect(port, "127.0.0.1");
    // The server may be stopped meanwhile.
    this.#socket.on("error", () => {});
    this.#socket.setEncoding("latin1").on("data", (text: string) => {
      this.#reply += text;
      if (!this.#reply.endsWith("END\r\n")) return;
      this.#take(/STAT time (\d+)/.exec(this.#reply)?.[1] ?? "");
      this.#reply = "";
      setTimeout(() => this.#ask(), 1);
    });
    this.#ask();
  }

  stop(): void {
    this.#socket.destroy();
  }

  #ask(): void {
    this.#asked = performance.now();
    if (!this.#socket.destroyed) this.#socket.write("stats\r\n");
  }

  #take(second: string): void {
    if (second !== this.#second) {
      const tookMs = performance.now() - this.#earliest;
      if (tookMs > SECOND_MS + ALLOWED_MS) this.lateMs += tookMs - SECOND_MS;
      this.#earliest = this.#second === "" ? Number.POSITIVE_INFINITY : this.#seen;
      this.#second = second;
    }
    this.#seen = this.#asked;
  }
}
