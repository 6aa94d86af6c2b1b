// Reads the topology from the first server that knows enough of it, so that a dead or frozen one delays nothing.
import type { HostPort } from "../../../core/address/address.ts";
import type { Clock, Timer } from "../../../core/clock.ts";
import { BackendError, ConnectionError, OperationTimeoutError } from "../../../core/errors.ts";
import { toError } from "../../../core/events.ts";
import { nodeEvents } from "../../../core/lazy-builtin.ts";
import type { Reply } from "../resp/reply.ts";
import { toXCacheError } from "../resp/reply-error.ts";
import { Connection, type ConnectionSettings } from "../server/connection.ts";
import { slotsIn, type Topology, topologyOf } from "./topology.ts";

/** A server to query, over its open connection if there is one. */
export interface TopologySource {
  readonly endpoint: HostPort;
  readonly connection: Connection | undefined;
}

export interface LookupOptions {
  readonly clock: Clock;
  readonly settings: Omit<ConnectionSettings, "endpoint">;
  /** Slots that an answer must cover to end the lookup; otherwise the answer that covers the most is taken. */
  readonly enoughSlots: number;
}

/** How long a server may take before the next one is queried as well. */
const STAGGER_MS = 100;

/** One lookup: queries one server after the other until an answer covers enough slots. */
export class TopologyLookup {
  readonly answer: Promise<Topology>;
  readonly #options: LookupOptions;
  readonly #sources: readonly TopologySource[];
  /** Closes the connections that were opened for this lookup. */
  readonly #stop = new AbortController();
  #queried = 0;
  #answered = 0;
  #failed = 0;
  /** The answer that covers the most slots, while none covers enough. */
  #mostComplete: Topology | undefined;
  #stagger: Timer | undefined;
  #limit: Timer | undefined;
  #hasEnded = false;
  #resolve: (topology: Topology) => void = () => {};
  #reject: (error: Error) => void = () => {};

  constructor(sources: readonly TopologySource[], options: LookupOptions) {
    this.#options = options;
    this.#sources = sources;
    this.answer = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    // One for each server that is queried.
    nodeEvents().setMaxListeners(0, this.#stop.signal);
    const { connectTimeoutMs } = options.settings;
    this.#limit = options.clock.after(connectTimeoutMs, () =>
      this.#conclude(
        new OperationTimeoutError(
          `no server of the cluster answered CLUSTER SLOTS within connect_timeout (${connectTimeoutMs / 1000} s)`,
        ),
      ),
    );
    this.#next();
  }

  /** Whether every server has answered. */
  get hasAllAnswers(): boolean {
    return this.#answered === this.#sources.length;
  }

  /** Abandons the lookup. */
  end(reason: Error): void {
    this.#fail(reason);
  }

  #next(): void {
    this.#stagger?.cancel();
    if (this.#hasEnded) return;
    this.#stagger = this.#options.clock.after(STAGGER_MS, () => this.#slow());
    const source = this.#sources[this.#queried];
    if (source === undefined) return;
    this.#queried++;
    this.#query(source).then(
      (topology) => this.#accept(topology),
      (error) => this.#sourceFailed(toError(error)),
    );
  }

  #slow(): void {
    if (this.#queried < this.#sources.length) this.#next();
    else if (this.#mostComplete !== undefined) this.#take(this.#mostComplete);
  }

  async #query({ endpoint, connection }: TopologySource): Promise<Topology> {
    const reply =
      connection === undefined
        ? await this.#queryNewConnection(endpoint)
        : await connection.command("CLUSTER", "SLOTS");
    const topology = topologyOf(reply, endpoint.host, this.#options.settings.translate);
    if (topology.ranges.length === 0) throw new NoSlotsError(endpoint);
    return topology;
  }

  async #queryNewConnection(endpoint: HostPort): Promise<Reply> {
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

  /** A server may know only part of the cluster, for example one that has just joined: then the others are queried too. */
  #accept(topology: Topology): void {
    if (this.#hasEnded) return;
    this.#answered++;
    if (this.#mostComplete === undefined || slotsIn(topology) > slotsIn(this.#mostComplete))
      this.#mostComplete = topology;
    if (slotsIn(this.#mostComplete) >= this.#options.enoughSlots || this.#isComplete)
      this.#take(this.#mostComplete);
    else this.#next();
  }

  #sourceFailed(error: Error): void {
    if (error instanceof NoSlotsError) this.#answered++;
    else this.#failed++;
    if (this.#isComplete) this.#conclude(noTopology(error, this.#sources.length));
    else this.#next();
  }

  get #isComplete(): boolean {
    return this.#answered + this.#failed === this.#sources.length;
  }

  /** No further answer will come. */
  #conclude(error: Error): void {
    if (this.#mostComplete === undefined) this.#fail(error);
    else this.#take(this.#mostComplete);
  }

  #take(topology: Topology): void {
    if (this.#end()) this.#resolve(topology);
  }

  #fail(error: Error): void {
    if (this.#end()) this.#reject(error);
  }

  /** False if it had already ended. */
  #end(): boolean {
    if (this.#hasEnded) return false;
    this.#hasEnded = true;
    this.#stagger?.cancel();
    this.#limit?.cancel();
    this.#stop.abort(answered());
    return true;
  }
}

/** Counts as an answer: the server was reached and knows of no slots. */
class NoSlotsError extends Error {
  constructor({ host, port }: HostPort) {
    super(`${host}:${port} knows no slots`);
  }
}

const answered = (): ConnectionError => new ConnectionError("the topology lookup has ended");

function noTopology(last: Error, queried: number): Error {
  const cause = toXCacheError(last);
  const details = cause instanceof BackendError ? { cause, hint: cause.hint } : { cause };
  return new ConnectionError(
    `none of the ${queried} servers queried returned the slots of the cluster; the last error: ${cause.message}`,
    /cluster support disabled/.test(last.message)
      ? { cause, hint: "It is a standalone server: use redis:// instead of redis+cluster://." }
      : details,
  );
}
