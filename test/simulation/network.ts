// The simulated network: connections whose bytes travel only when the scheduler lets them.
import { ConnectionError } from "../../src/core/errors.ts";
import { commandsIn } from "./resp.ts";
import { type Client, leaseIn, type Server } from "./server.ts";

/** Something on its way to a client: a reply, a push, or the end of the connection. */
interface Frame {
  /** How many commands had been executed anywhere when it was sent. */
  readonly sequence: number;
  readonly text: string | undefined;
  /** The version of the lease that was in the way of a swap. */
  readonly lease?: string | undefined;
}

/** The client's end, as src/backends/wire/socket.ts hands it out. */
export interface ClientEnd {
  arrived(bytes: Buffer): void;
  closed(error: Error | undefined): void;
}

/** One connection from a process to the store. */
export class Link implements Client {
  readonly id: number;
  readonly process: number;
  readonly server: Server;
  tracking: Client["tracking"] = "off";
  caching: Client["caching"];
  readonly toServer: string[][] = [];
  readonly toClient: Frame[] = [];
  /** What is on its way waits until the scheduler releases it. */
  isHeld = false;
  /** The tick of the schedule at which it was accepted. */
  since = Number.POSITIVE_INFINITY;
  isClientOpen = true;
  isServerOpen = true;
  end: ClientEnd | undefined;
  readonly #network: Network;

  constructor(network: Network, id: number, process: number, server: Server) {
    this.#network = network;
    this.id = id;
    this.process = process;
    this.server = server;
  }

  /** Everything that was sent has arrived. */
  get isIdle(): boolean {
    return (
      this.isClientOpen &&
      this.isServerOpen &&
      !this.isHeld &&
      this.toServer.length === 0 &&
      this.toClient.length === 0
    );
  }

  /** The process writes. */
  write(bytes: Uint8Array): void {
    if (this.isClientOpen && this.isServerOpen) this.toServer.push(...commandsIn(bytes));
  }

  /** The process closes its end; bytes on their way to the server may still arrive. */
  destroy(): void {
    if (!this.isClientOpen) return;
    this.isClientOpen = false;
    this.toClient.length = 0;
    if (this.toServer.length === 0) this.#gone();
  }

  /** The connection is cut: the process notices at once; with `arrives`, what it had sent still reaches the server. */
  reset(arrives: boolean): void {
    if (!arrives) this.toServer.length = 0;
    this.end?.closed(new ConnectionError("read ECONNRESET"));
    this.destroy();
  }

  /** The server executes the next commands. */
  serve(count: number): void {
    for (let left = count; left > 0 && this.toServer.length > 0; left--) {
      const args = this.toServer.shift() as string[];
      if (!this.isServerOpen) continue;
      this.server.execute(this, args);
      const lease = leaseIn(args);
      if (lease !== undefined) this.#network.wroteLease?.(this.process, lease);
    }
    if (!this.isClientOpen && this.toServer.length === 0) this.#gone();
  }

  /** The next frames reach the process. */
  deliver(count: number): void {
    let arriving = "";
    let isEnd = false;
    for (const { lease, sequence, text } of this.toClient.splice(0, count)) {
      if (lease !== undefined) this.#network.sawLease?.(this.process, lease, sequence);
      if (text === undefined) isEnd = true;
      else arriving += text;
    }
    if (arriving !== "") this.end?.arrived(Buffer.from(arriving, "latin1"));
    if (isEnd && this.isClientOpen) {
      this.end?.closed(undefined);
      this.destroy();
    }
  }

  send(text: string, lease?: string): void {
    if (this.isClientOpen) this.toClient.push({ sequence: this.#network.sequence, text, lease });
  }

  /** The server closes its end: the process notices when the news reaches it. */
  close(): void {
    if (!this.isServerOpen) return;
    this.isServerOpen = false;
    this.toServer.length = 0;
    if (this.isClientOpen) this.toClient.push({ sequence: this.#network.sequence, text: undefined });
    else this.#gone();
  }

  /** What is on its way to the server never arrives. */
  discard(): void {
    this.toServer.length = 0;
    this.#gone();
  }

  #gone(): void {
    this.isServerOpen = false;
    this.server.drop(this);
    this.#network.links.delete(this);
  }
}

/** Whether commands of a process can reach the store on it now. */
export const isServable = (link: Link, process: number): boolean =>
  link.process === process && link.toServer.length > 0 && !(link.isHeld && link.isClientOpen);

/** Whether something can reach a process on it now. */
export const isDeliverable = (link: Link, process: number): boolean =>
  link.process === process && link.toClient.length > 0 && !link.isHeld;

/** An attempt to connect that has not reached the server yet. */
export interface Attempt {
  readonly process: number;
  accepted(link: Link): void;
  refused(error: Error): void;
}

export class Network {
  /** The server that the store's address leads to. */
  master: Server;
  /** Connections are refused: no server is running. */
  isDown = false;
  /** How many commands were executed. */
  sequence = 0;
  readonly links = new Set<Link>();
  readonly attempts: Attempt[] = [];
  /** How many connections each process lost; Infinity: an attempt to connect has failed. */
  readonly losses: number[] = [];
  /** Called when a process learns that a lease is in its way, and at which command it was. */
  sawLease: ((process: number, lease: string, sequence: number) => void) | undefined;
  /** Called when the server has executed a command of a process that puts a lease in the place of an entry. */
  wroteLease: ((process: number, spelled: string) => void) | undefined;
  /** Called when a process loses a connection or fails to open one. */
  failed: ((process: number) => void) | undefined;
  #ids = 0;

  constructor(master: Server) {
    this.master = master;
  }

  /** Connections of a process that it has not given up. */
  linksOf(process: number): Link[] {
    return this.#linksWith((link) => link.process === process && link.isClientOpen);
  }

  /** Those with commands that can reach the store now. */
  servable(process: number): Link[] {
    return this.#linksWith((link) => isServable(link, process));
  }

  /** Those with something that can reach the process now. */
  deliverable(process: number): Link[] {
    return this.#linksWith((link) => isDeliverable(link, process));
  }

  /** What a process has certainly heard of: everything up to this sequence number. */
  heardBy(process: number): number {
    let heard = Number.POSITIVE_INFINITY;
    for (const link of this.links) {
      if (link.process !== process || !link.isClientOpen) continue;
      // What the master has executed since need not have reached it.
      if (link.server.isReplica) return Number.NEGATIVE_INFINITY;
      const [next] = link.toClient;
      if (next !== undefined) heard = Math.min(heard, next.sequence - 1);
    }
    return heard;
  }

  #linksWith(isWanted: (link: Link) => boolean): Link[] {
    const found: Link[] = [];
    for (const link of this.links) if (isWanted(link)) found.push(link);
    return found;
  }

  attempt(attempt: Attempt): () => void {
    this.attempts.push(attempt);
    return () => {
      const at = this.attempts.indexOf(attempt);
      if (at >= 0) this.attempts.splice(at, 1);
    };
  }

  /** An attempt reaches the server. */
  connect(attempt: Attempt): void {
    this.attempts.splice(this.attempts.indexOf(attempt), 1);
    if (this.isDown) {
      attempt.refused(Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" }));
      return;
    }
    const link = new Link(this, ++this.#ids, attempt.process, this.master);
    this.links.add(link);
    this.master.accept(link);
    attempt.accepted(link);
  }

  lost(process: number): void {
    this.failed?.(process);
    this.losses[process] = (this.losses[process] ?? 0) + 1;
  }

  /** An attempt has failed: from then on every call may fail by itself. */
  refused(process: number): void {
    this.failed?.(process);
    this.losses[process] = Number.POSITIVE_INFINITY;
  }

  /** A process has died: its ends are closed, what it sent may still arrive. */
  died(process: number): void {
    for (const link of this.links) {
      if (link.process !== process) continue;
      link.end = undefined;
      link.destroy();
    }
    for (const attempt of [...this.attempts])
      if (attempt.process === process) this.attempts.splice(this.attempts.indexOf(attempt), 1);
  }
}
