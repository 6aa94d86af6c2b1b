// One command sent to a cluster: follows redirections and retries until a server executes it or its deadline passes.
import type { MessagePort } from "node:worker_threads";
import type { HostPort } from "../../../core/address/address.ts";
import type { Clock, Timer } from "../../../core/clock.ts";
import { ConnectionError, OperationTimeoutError } from "../../../core/errors.ts";
import { isLoss } from "../../../core/resilience/store-failure.ts";
import { type Reply, ReplyError } from "../resp/reply.ts";
import type { Argument } from "../resp/writer.ts";
import type { Answer } from "../server/connection.ts";
import { isNotMaster } from "../server/connection-error.ts";
import type { KvConnection, RetryableAnswer } from "../server/kv-connection.ts";
import { type Redirect, redirectIn } from "./topology.ts";

/** A connection to a server. */
export interface Route {
  readonly host: string;
  link(slot: number): KvConnection;
}

export interface CallHost {
  readonly clock: Clock;
  readonly operationTimeoutMs: number;
  /** The address to use for one that a server announced. */
  translate(announced: HostPort): HostPort;
  /** To the master of a slot; undefined if none is known. */
  route(slot: number): Route | undefined;
  /** To a server that imports a slot and already has one of its keys (ASK). */
  routeAsking(redirect: Redirect): Route;
  /** A MOVED redirection. False if its target is not known yet, so that the topology must be read first. */
  moved(redirect: Redirect): boolean;
  /** The known topology may be out of date. */
  refreshSoon(): void;
  /** Resolves when the topology has been read again. */
  refreshTopology(): Promise<void>;
  /** As `refreshTopology`, for a slot without a known master. */
  searchMaster(): Promise<void>;
  /** The call waits for something other than a reply; closing the cluster fails it. */
  park(call: ClusterCall): void;
  unpark(call: ClusterCall): void;
}

/** Reads a key. `isWatched`: see Backend.readThen. */
export class ClusterRead {
  readonly key: string;
  readonly isWatched: boolean;

  constructor(key: string, isWatched: boolean) {
    this.key = key;
    this.isWatched = isWatched;
  }
}

const MOST_HOPS = 16;
/** Redirections followed without a pause. While a slot migrates, two servers may redirect to each other. */
const QUICK_HOPS = 2;
const FIRST_PAUSE_MS = 10;
/** As a share of operation_timeout: all hops together then last about that long. */
const LONGEST_PAUSE = 0.1;

export class ClusterCall implements RetryableAnswer {
  /** When its caller stops waiting. */
  readonly due: number;
  readonly #host: CallHost;
  readonly #slot: number;
  readonly #command: readonly Argument[] | ClusterRead;
  readonly #answer: Answer;
  #queriedHost = "";
  #link: KvConnection | undefined;
  #hops = 0;
  #last: Error | undefined;
  #deadline: Timer | undefined;
  #pause: Timer | undefined;
  #hasEnded = false;

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
    else this.#afterRefresh(noMaster(this.#slot), this.#host.searchMaster());
  }

  resolve(reply: Reply): unknown {
    return this.#end() && this.#answer.resolve(reply);
  }

  reject(error: Error): void {
    if (this.#hasEnded) return;
    if (error instanceof ReplyError) {
      this.#errorReply(error);
      return;
    }
    this.#host.refreshSoon();
    if (this.#command instanceof ClusterRead && isLoss(error)) this.#retryLater(error);
    // The server may have executed it: only the caller knows whether it can be repeated.
    else this.fail(error);
  }

  unsent(error: Error): void {
    if (this.#hasEnded) return;
    this.#host.refreshSoon();
    // Its successor becomes known through the topology, soon if it is a replica now.
    if (this.#link?.isUnreachable === true && !isNotMaster(error)) this.fail(error);
    else this.#retryLater(error);
  }

  fail(error: Error): void {
    if (this.#end()) this.#answer.reject(error);
  }

  /** An error reply: the command was not executed, so it may be sent again. */
  #errorReply(error: ReplyError): void {
    switch (error.code) {
      case "MOVED":
        this.#moved(error);
        break;
      case "ASK":
        this.#ask(error);
        break;
      case "CLUSTERDOWN":
      case "READONLY":
      case "LOADING":
        this.#host.refreshSoon();
        this.#retryLater(error);
        break;
      case "TRYAGAIN":
        this.#retryLater(error);
        break;
      default:
        this.fail(error);
    }
  }

  #moved(error: ReplyError): void {
    const redirect = this.#redirect(error);
    if (redirect === undefined) this.fail(error);
    else if (this.#host.moved(redirect)) this.#hop(error, () => this.start());
    else this.#hop(error, () => this.#afterRefresh(error, this.#host.refreshTopology()));
  }

  #ask(error: ReplyError): void {
    const redirect = this.#redirect(error);
    if (redirect === undefined) this.fail(error);
    else this.#hop(error, () => this.#sendAsking(this.#host.routeAsking(redirect)));
  }

  #redirect(error: ReplyError): Redirect | undefined {
    const redirect = redirectIn(error, this.#queriedHost);
    return redirect === undefined ? undefined : { ...redirect, to: this.#host.translate(redirect.to) };
  }

  #send(route: Route): void {
    this.#queriedHost = route.host;
    const link = route.link(this.#slot);
    this.#link = link;
    if (link.connection === undefined) this.#park();
    const command = this.#command;
    if (command instanceof ClusterRead) link.read(command.key, command.isWatched, this);
    else link.send(command, this);
  }

  #sendAsking(route: Route): void {
    this.#queriedHost = route.host;
    const link = route.link(this.#slot);
    this.#link = link;
    const command = this.#command;
    link.sendAsking(command instanceof ClusterRead ? ["GET", command.key] : command, this);
  }

  #hop(error: Error, proceed: () => void): void {
    this.#retry(error, this.#hops < QUICK_HOPS ? 0 : this.#pauseMs(), proceed);
  }

  #retryLater(error: Error): void {
    this.#retry(error, this.#pauseMs(), () => this.start());
  }

  #retry(error: Error, pauseMs: number, proceed: () => void): void {
    this.#last = error;
    if (++this.#hops > MOST_HOPS || this.#host.clock.now() + pauseMs >= this.due) {
      this.fail(error);
      return;
    }
    this.#park();
    if (pauseMs === 0) proceed();
    else this.#pause = this.#host.clock.after(pauseMs, proceed);
  }

  #afterRefresh(reason: Error, refreshed: Promise<void>): void {
    this.#last = reason;
    this.#park();
    refreshed.then(
      () => {
        if (!this.#hasEnded) this.start();
      },
      (failure) => this.fail(failure),
    );
  }

  #pauseMs(): number {
    const { clock, operationTimeoutMs } = this.#host;
    const longest = Math.max(FIRST_PAUSE_MS, operationTimeoutMs * LONGEST_PAUSE);
    return Math.min(FIRST_PAUSE_MS * 2 ** this.#hops, longest) * (0.5 + clock.random() / 2);
  }

  /** From here on no connection enforces the deadline. */
  #park(): void {
    if (this.#deadline !== undefined) return;
    const { clock } = this.#host;
    this.#host.park(this);
    this.#deadline = clock.after(this.due - clock.now(), () => this.fail(this.#timeoutError()));
  }

  #timeoutError(): OperationTimeoutError {
    const limit = `operation_timeout (${this.#host.operationTimeoutMs / 1000} s)`;
    return this.#last === undefined
      ? new OperationTimeoutError(`no connection to the store within ${limit}`)
      : new OperationTimeoutError(`the cluster did not execute the command within ${limit}`, {
          cause: this.#last,
        });
  }

  /** False if it had already ended. */
  #end(): boolean {
    if (this.#hasEnded) return false;
    this.#hasEnded = true;
    if (this.#deadline !== undefined) {
      this.#deadline.cancel();
      this.#pause?.cancel();
      this.#host.unpark(this);
    }
    return true;
  }
}

function noMaster(slot: number): ConnectionError {
  return new ConnectionError(`slot ${slot} of the cluster has no known master`);
}

/** The calls that wait for a pause, the topology or a connection. */
export class ParkedCalls {
  readonly #calls = new Set<ClusterCall>();
  /** Callers wait for these, yet no socket or timer keeps the process alive meanwhile; an open port does. */
  #keepAlive: MessagePort | undefined;

  add(call: ClusterCall): void {
    this.#calls.add(call);
    if (this.#keepAlive !== undefined) return;
    this.#keepAlive = new MessageChannel().port1;
    this.#keepAlive.ref();
  }

  delete(call: ClusterCall): void {
    this.#calls.delete(call);
    if (this.#calls.size > 0) return;
    this.#keepAlive?.close();
    this.#keepAlive = undefined;
  }

  end(reason: Error): void {
    for (const call of [...this.#calls]) call.fail(reason);
  }
}
