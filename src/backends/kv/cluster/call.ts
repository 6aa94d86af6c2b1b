// One command on its way through a cluster: it follows the slot of its key until somebody carries it out.
import type { Clock, Timer } from "../../../core/clock.ts";
import { ConnectionError, OperationTimeoutError } from "../../../core/errors.ts";
import { type Reply, ReplyError } from "../resp/reply.ts";
import type { Argument } from "../resp/writer.ts";
import type { Answer } from "../server/connection.ts";
import type { Link, LinkAnswer } from "../server/link.ts";
import { type Redirect, redirectIn } from "./topology.ts";

/** A way to a server. */
export interface Route {
  readonly host: string;
  link(slot: number): Link;
}

export interface CallHost {
  readonly clock: Clock;
  readonly operationTimeoutMs: number;
  /** To the server that holds a slot; undefined where nobody is known to. */
  route(slot: number): Route | undefined;
  /** To a server that has a key before it has its slot. */
  routeAsking(redirect: Redirect): Route;
  /** A server says that another one holds the slot. False where that one has to be got to know first. */
  moved(redirect: Redirect): boolean;
  /** What is known of the cluster may be out of date. */
  doubt(): void;
  /** Resolves when the cluster has been asked for its topology. */
  learn(): Promise<void>;
  /** As `learn`, for a slot that nobody is known to hold. */
  search(): Promise<void>;
  /** The call waits for something else than a reply; it is ended with the rest when the cluster is left. */
  hold(call: ClusterCall): void;
  release(call: ClusterCall): void;
}

/** The command to read a key. `isWatched`: see Backend.readThen. */
export class ClusterRead {
  readonly key: string;
  readonly isWatched: boolean;

  constructor(key: string, isWatched: boolean) {
    this.key = key;
    this.isWatched = isWatched;
  }
}

/** How many times a command is sent again at most. */
const MOST_HOPS = 16;
/** A slot that is being handed over has two servers point to each other: so many redirections are followed at once. */
const QUICK_HOPS = 2;
const FIRST_PAUSE_MS = 10;
/** The longest pause is this part of operation_timeout, so that all hops together last about as long. */
const LONGEST_PAUSE = 0.1;

export class ClusterCall implements LinkAnswer {
  /** Nobody waits for it any longer than this. */
  readonly due: number;
  readonly #host: CallHost;
  readonly #slot: number;
  readonly #command: readonly Argument[] | ClusterRead;
  readonly #answer: Answer;
  #askedHost = "";
  #link: Link | undefined;
  #hops = 0;
  #last: Error | undefined;
  #deadline: Timer | undefined;
  #pause: Timer | undefined;
  #isOver = false;

  constructor(host: CallHost, slot: number, command: readonly Argument[] | ClusterRead, answer: Answer) {
    this.due = answer.due ?? host.clock.now() + host.operationTimeoutMs;
    this.#host = host;
    this.#slot = slot;
    this.#command = command;
    this.#answer = answer;
  }

  start(): void {
    const route = this.#host.route(this.#slot);
    if (route !== undefined) this.#send(route);
    else this.#learn(nobodyHolds(this.#slot), this.#host.search());
  }

  resolve(reply: Reply): unknown {
    return this.#end() && this.#answer.resolve(reply);
  }

  reject(error: Error): void {
    if (this.#isOver) return;
    if (error instanceof ReplyError) {
      this.#refused(error);
      return;
    }
    // It may have been carried out: only its caller can know what to do.
    this.#host.doubt();
    this.fail(error);
  }

  unsent(error: Error): void {
    if (this.#isOver) return;
    this.#host.doubt();
    // The others tell when another one has taken its place.
    if (this.#link?.isHopeless === true) this.fail(error);
    else this.#later(error);
  }

  fail(error: Error): void {
    if (this.#end()) this.#answer.reject(error);
  }

  /** None of these servers has carried it out. */
  #refused(error: ReplyError): void {
    switch (error.code) {
      case "MOVED":
        this.#moved(error);
        break;
      case "ASK":
        this.#asking(error);
        break;
      case "CLUSTERDOWN":
      case "READONLY":
      case "LOADING":
        this.#host.doubt();
        this.#later(error);
        break;
      case "TRYAGAIN":
        this.#later(error);
        break;
      default:
        this.fail(error);
    }
  }

  #moved(error: ReplyError): void {
    const redirect = redirectIn(error, this.#askedHost);
    if (redirect === undefined) this.fail(error);
    else if (this.#host.moved(redirect)) this.#hop(error, () => this.start());
    else this.#hop(error, () => this.#learn(error, this.#host.learn()));
  }

  #asking(error: ReplyError): void {
    const redirect = redirectIn(error, this.#askedHost);
    if (redirect === undefined) this.fail(error);
    else this.#hop(error, () => this.#sendAsking(this.#host.routeAsking(redirect)));
  }

  #send(route: Route): void {
    this.#askedHost = route.host;
    const link = route.link(this.#slot);
    this.#link = link;
    if (link.connection === undefined) this.#hold();
    const command = this.#command;
    if (command instanceof ClusterRead) link.read(command.key, command.isWatched, this);
    else link.send(command, this);
  }

  #sendAsking(route: Route): void {
    this.#askedHost = route.host;
    const link = route.link(this.#slot);
    this.#link = link;
    const command = this.#command;
    link.sendAsking(command instanceof ClusterRead ? ["GET", command.key] : command, this);
  }

  #hop(error: Error, proceed: () => void): void {
    this.#again(error, this.#hops < QUICK_HOPS ? 0 : this.#pauseMs(), proceed);
  }

  #later(error: Error): void {
    this.#again(error, this.#pauseMs(), () => this.start());
  }

  #again(error: Error, pauseMs: number, proceed: () => void): void {
    this.#last = error;
    if (++this.#hops > MOST_HOPS || this.#host.clock.now() + pauseMs >= this.due) {
      this.fail(error);
      return;
    }
    this.#hold();
    if (pauseMs === 0) proceed();
    else this.#pause = this.#host.clock.after(pauseMs, proceed);
  }

  #learn(reason: Error, learnt: Promise<void>): void {
    this.#last = reason;
    this.#hold();
    learnt.then(
      () => {
        if (!this.#isOver) this.start();
      },
      (failure) => this.fail(failure),
    );
  }

  #pauseMs(): number {
    const { clock, operationTimeoutMs } = this.#host;
    const longest = Math.max(FIRST_PAUSE_MS, operationTimeoutMs * LONGEST_PAUSE);
    return Math.min(FIRST_PAUSE_MS * 2 ** this.#hops, longest) * (0.5 + clock.random() / 2);
  }

  /** From here on nothing else makes sure that it ends in time. */
  #hold(): void {
    if (this.#deadline !== undefined) return;
    const { clock } = this.#host;
    this.#host.hold(this);
    this.#deadline = clock.after(this.due - clock.now(), () => this.fail(this.#late()));
  }

  #late(): OperationTimeoutError {
    const limit = `operation_timeout (${this.#host.operationTimeoutMs / 1000} s)`;
    return this.#last === undefined
      ? new OperationTimeoutError(`no connection to the store within ${limit}`)
      : new OperationTimeoutError(`the cluster did not carry out a command within ${limit}`, {
          cause: this.#last,
        });
  }

  /** False when it was over before. */
  #end(): boolean {
    if (this.#isOver) return false;
    this.#isOver = true;
    if (this.#deadline !== undefined) {
      this.#deadline.cancel();
      this.#pause?.cancel();
      this.#host.release(this);
    }
    return true;
  }
}

function nobodyHolds(slot: number): ConnectionError {
  return new ConnectionError(`no server of the cluster is known to hold slot ${slot}`);
}
