// Asks a cluster who holds its slots: whichever server answers first, so that a dead or frozen one does not delay the rest.
import type { HostPort } from "../../core/address.ts";
import type { Clock, Timer } from "../../core/clock.ts";
import { BackendError, ConnectionError, OperationTimeoutError } from "../../core/errors.ts";
import { toError } from "../../core/events.ts";
import { type Topology, topologyOf } from "./cluster-topology.ts";
import { Connection, type ConnectionSettings } from "./connection.ts";
import type { Reply } from "./reply.ts";
import { inOurWords } from "./reply-error.ts";

/** Somebody who may know; a connection that is open already is the quickest. */
export interface Witness {
  readonly endpoint: HostPort;
  readonly connection: Connection | undefined;
}

export interface LookupOptions {
  readonly clock: Clock;
  readonly settings: Omit<ConnectionSettings, "endpoint">;
}

/** How long one is waited for before the next is asked as well. */
const PATIENCE_MS = 100;

/** One question, put to one witness after the other until somebody answers. */
export class Lookup {
  readonly answer: Promise<Topology>;
  readonly #options: LookupOptions;
  readonly #witnesses: readonly Witness[];
  /** Ends the connections that are opened for this question only. */
  readonly #stop = new AbortController();
  #asked = 0;
  #failed = 0;
  #patience: Timer | undefined;
  #limit: Timer | undefined;
  #isOver = false;
  #resolve: (topology: Topology) => void = () => {};
  #reject: (error: Error) => void = () => {};

  constructor(witnesses: readonly Witness[], options: LookupOptions) {
    this.#options = options;
    this.#witnesses = witnesses;
    this.answer = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    const { connectTimeoutMs } = options.settings;
    this.#limit = options.clock.after(connectTimeoutMs, () =>
      this.#fail(
        new OperationTimeoutError(
          `no server of the cluster said who holds its slots within connect_timeout (${connectTimeoutMs / 1000} s)`,
        ),
      ),
    );
    this.#next();
  }

  /** Nobody waits for the answer any more. */
  end(reason: Error): void {
    this.#fail(reason);
  }

  #next(): void {
    this.#patience?.cancel();
    const witness = this.#witnesses[this.#asked];
    if (this.#isOver || witness === undefined) return;
    this.#asked++;
    this.#patience = this.#options.clock.after(PATIENCE_MS, () => this.#next());
    this.#ask(witness).then(
      (topology) => {
        if (this.#end()) this.#resolve(topology);
      },
      (error) => this.#unanswered(toError(error)),
    );
  }

  async #ask({ endpoint, connection }: Witness): Promise<Topology> {
    const reply =
      connection === undefined ? await this.#askAnew(endpoint) : await connection.command("CLUSTER", "SLOTS");
    const topology = topologyOf(reply, endpoint.host);
    if (topology.ranges.length === 0) throw new Error(`${endpoint.host}:${endpoint.port} knows of no slots`);
    return topology;
  }

  async #askAnew(endpoint: HostPort): Promise<Reply> {
    const connection = await Connection.open(
      { ...this.#options.settings, endpoint },
      { pushed: () => {}, closed: () => {}, signal: this.#stop.signal },
    );
    try {
      return await connection.command("CLUSTER", "SLOTS");
    } finally {
      connection.destroy(answered());
    }
  }

  #unanswered(error: Error): void {
    this.#failed++;
    if (this.#failed === this.#witnesses.length) this.#fail(nobodyKnows(error, this.#failed));
    else this.#next();
  }

  #fail(error: Error): void {
    if (this.#end()) this.#reject(error);
  }

  /** False when it was over before. */
  #end(): boolean {
    if (this.#isOver) return false;
    this.#isOver = true;
    this.#patience?.cancel();
    this.#limit?.cancel();
    this.#stop.abort(answered());
    return true;
  }
}

const answered = (): ConnectionError => new ConnectionError("the cluster was asked for its slots");

function nobodyKnows(last: Error, asked: number): Error {
  const cause = inOurWords(last);
  const details = cause instanceof BackendError ? { cause, hint: cause.hint } : { cause };
  return new ConnectionError(
    `none of the ${asked} servers asked says who holds the slots of the cluster; the last: ${cause.message}`,
    /cluster support disabled/.test(last.message)
      ? { cause, hint: "It is a single server: use redis:// instead of redis+cluster://." }
      : details,
  );
}
