// The servers of a cluster that this process talks to: made when they get slots, closed when they have none left.
import type { HostPort } from "../../../core/address/address.ts";
import type { Timer } from "../../../core/clock.ts";
import { Connection } from "../server/connection.ts";
import { Link } from "../server/link.ts";
import { KvNode, type NodeHost } from "../server/node.ts";
import type { Route } from "./call.ts";
import { nameOfHost } from "./topology.ts";

/** A master that holds slots. */
export class Member {
  readonly endpoint: HostPort;
  readonly node: KvNode;

  constructor(endpoint: HostPort, host: NodeHost) {
    this.endpoint = endpoint;
    this.node = new KvNode(() => endpoint, host);
  }

  get host(): string {
    return this.endpoint.host;
  }

  /** All keys of a slot travel over the same link. */
  link(slot: number): Link {
    const { links } = this.node;
    return links[slot % links.length] as Link;
  }

  /** One that is open. */
  get connection(): Connection | undefined {
    return this.node.links.find(({ connection }) => connection !== undefined)?.connection;
  }

  /** When the last question that the server answered had been sent; 0 for none. */
  get provenAt(): number {
    const connections = this.node.links.map(({ connection }) => connection?.provenAt ?? 0);
    return Math.max(this.node.lastProvenAt, ...connections);
  }
}

/** A server that is asked for keys before it has any slot. */
class Guest {
  readonly host: string;
  usedAt = 0;
  readonly #link: Link;

  constructor(endpoint: HostPort, { clock, settings }: NodeHost) {
    this.host = endpoint.host;
    this.#link = new Link({
      clock,
      operationTimeoutMs: settings.operationTimeoutMs,
      open: (listener) => Connection.open({ ...settings, endpoint }, listener),
      pushed: () => {},
      up: () => {},
      down: () => {},
    });
  }

  link(): Link {
    return this.#link;
  }
}

/** How long after its last use. */
const GUEST_KEPT_MS = 5_000;
const SWEEP_MS = 100;

export class Members {
  readonly #host: NodeHost;
  readonly #members = new Map<string, Member>();
  /** Masters no more; what they were sent is still answered. A server that comes back is met anew. */
  readonly #leaving = new Map<Member, number>();
  readonly #guests = new Map<string, Guest>();
  #sweep: Timer | undefined;

  constructor(host: NodeHost) {
    this.#host = host;
  }

  all(): readonly Member[] {
    return [...this.#members.values()];
  }

  find(endpoint: HostPort): Member | undefined {
    return this.#members.get(nameOfHost(endpoint));
  }

  add(endpoint: HostPort): Member {
    const member = new Member(endpoint, this.#host);
    this.#members.set(nameOfHost(endpoint), member);
    return member;
  }

  /** For a key that a server has before it has the key's slot. Nothing is kept of what is read there. */
  guest(endpoint: HostPort): Route {
    const name = nameOfHost(endpoint);
    const guest = this.#guests.get(name) ?? new Guest(endpoint, this.#host);
    guest.usedAt = this.#host.clock.now();
    this.#guests.set(name, guest);
    this.#sweepLater();
    return guest;
  }

  /** Everybody else leaves, once what they were sent is answered. Returns whether anybody does. */
  keep(owners: ReadonlySet<Member>): boolean {
    const until = this.#host.clock.now() + this.#host.settings.operationTimeoutMs;
    let leaves = false;
    for (const [name, member] of this.#members) {
      if (owners.has(member)) continue;
      this.#members.delete(name);
      this.#leaving.set(member, until);
      leaves = true;
    }
    if (leaves) this.#sweepNow();
    return leaves;
  }

  close(): void {
    this.#sweep?.cancel();
    for (const { node } of [...this.#members.values(), ...this.#leaving.keys()]) node.close();
    for (const guest of this.#guests.values()) guest.link().close();
    this.#members.clear();
    this.#leaving.clear();
    this.#guests.clear();
  }

  #sweepNow(): void {
    this.#sweep?.cancel();
    this.#sweep = undefined;
    const now = this.#host.clock.now();
    for (const [member, until] of this.#leaving) {
      if (!member.node.links.every(isIdle) && now < until) continue;
      this.#leaving.delete(member);
      member.node.close();
    }
    for (const [name, guest] of this.#guests) {
      if (!isIdle(guest.link()) || now < guest.usedAt + GUEST_KEPT_MS) continue;
      this.#guests.delete(name);
      guest.link().close();
    }
    if (this.#leaving.size + this.#guests.size > 0) this.#sweepLater();
  }

  #sweepLater(): void {
    this.#sweep ??= this.#host.clock.after(SWEEP_MS, () => this.#sweepNow());
  }
}

const isIdle = (link: Link): boolean => link.waiting === 0 && (link.connection?.inFlight ?? 0) === 0;
