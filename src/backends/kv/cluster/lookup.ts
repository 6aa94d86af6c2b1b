// Asks a cluster who holds its slots: whichever server knows enough first, so that a dead or frozen one delays nobody.
import type { HostPort } from "../../../core/address/address.ts";
import type { Clock, Timer } from "../../../core/clock.ts";
import { BackendError, ConnectionError, OperationTimeoutError } from "../../../core/errors.ts";
import { toError } from "../../../core/events.ts";
import type { Reply } from "../resp/reply.ts";
import { inOurWords } from "../resp/reply-error.ts";
import { Connection, type ConnectionSettings } from "../server/connection.ts";
import { slotsIn, type Topology, topologyOf } from "./topology.ts";

/** Somebody who may know; a connection that is open already is the quickest. */
export interface Witness {
  readonly endpoint: HostPort;
  readonly connection: Connection | undefined;
}

export interface LookupOptions {
  readonly clock: Clock;
  readonly settings: Omit<ConnectionSettings, "endpoint">;
  /** How many slots an answer has to tell of; one that tells of fewer is taken where nobody tells of more. */
  readonly enoughSlots: number;
}

/** How long one is waited for before the next is asked as well. */
const PATIENCE_MS = 100;

/** One question, put to one witness after the other until somebody knows enough. */
export class TopologyLookup {
  readonly answer: Promise<Topology>;
  readonly #options: LookupOptions;
  readonly #witnesses: readonly Witness[];
  /** Ends the connections that are opened for this question only. */
  readonly #stop = new AbortController();
  #asked = 0;
  #answered = 0;
  #failed = 0;
  /** The answer that tells of the most slots, while none has told of enough. */
  #widest: Topology | undefined;
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
      this.#conclude(
        new OperationTimeoutError(
          `no server of the cluster said who holds its slots within connect_timeout (${connectTimeoutMs / 1000} s)`,
        ),
      ),
    );
    this.#next();
  }

  /** Whether nobody is left who may know more. */
  get hasHeardAll(): boolean {
    return this.#answered === this.#witnesses.length;
  }

  /** Nobody waits for the answer any more. */
  end(reason: Error): void {
    this.#fail(reason);
  }

  #next(): void {
    this.#patience?.cancel();
    if (this.#isOver) return;
    this.#patience = this.#options.clock.after(PATIENCE_MS, () => this.#outOfPatience());
    const witness = this.#witnesses[this.#asked];
    if (witness === undefined) return;
    this.#asked++;
    this.#ask(witness).then(
      (topology) => this.#heard(topology),
      (error) => this.#unanswered(toError(error)),
    );
  }

  #outOfPatience(): void {
    if (this.#asked < this.#witnesses.length) this.#next();
    else if (this.#widest !== undefined) this.#take(this.#widest);
  }

  async #ask({ endpoint, connection }: Witness): Promise<Topology> {
    const reply =
      connection === undefined ? await this.#askAnew(endpoint) : await connection.command("CLUSTER", "SLOTS");
    const topology = topologyOf(reply, endpoint.host);
    if (topology.ranges.length === 0) throw new KnowsNoSlots(endpoint);
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

  /** A server may know a part of the cluster only, as one that has just joined it: then the others are asked too. */
  #heard(topology: Topology): void {
    if (this.#isOver) return;
    this.#answered++;
    if (this.#widest === undefined || slotsIn(topology) > slotsIn(this.#widest)) this.#widest = topology;
    if (slotsIn(this.#widest) >= this.#options.enoughSlots || this.#isComplete) this.#take(this.#widest);
    else this.#next();
  }

  #unanswered(error: Error): void {
    if (error instanceof KnowsNoSlots) this.#answered++;
    else this.#failed++;
    if (this.#isComplete) this.#conclude(nobodyKnows(error, this.#witnesses.length));
    else this.#next();
  }

  get #isComplete(): boolean {
    return this.#answered + this.#failed === this.#witnesses.length;
  }

  /** Nobody else will answer. */
  #conclude(error: Error): void {
    if (this.#widest === undefined) this.#fail(error);
    else this.#take(this.#widest);
  }

  #take(topology: Topology): void {
    if (this.#end()) this.#resolve(topology);
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

/** An answer too: such a server knows of nobody who holds more. */
class KnowsNoSlots extends Error {
  constructor({ host, port }: HostPort) {
    super(`${host}:${port} knows of no slots`);
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
