// The servers of a cluster this process is connected to: opened when they get slots, closed when they have none left.
import type { HostPort } from "../../../core/address/address.ts";
import type { Timer } from "../../../core/clock.ts";
import { Connection } from "../server/connection.ts";
import { KvConnection } from "../server/kv-connection.ts";
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

  /** All keys of a slot use the same connection of the pool. */
  link(slot: number): KvConnection {
    const { links } = this.node;
    return links[slot % links.length] as KvConnection;
  }

  /** Any open connection to it. */
  get connection(): Connection | undefined {
    return this.node.links.find(({ connection }) => connection !== undefined)?.connection;
  }

  /** When the last command that the server answered was sent; 0 for none. */
  get provenAt(): number {
    const connections = this.node.links.map(({ connection }) => connection?.provenAt ?? 0);
    return Math.max(this.node.lastProvenAt, ...connections);
  }
}

/** A temporary connection to a server, for keys of a slot that it does not own yet. */
class Guest {
  readonly host: string;
  usedAt = 0;
  readonly #link: KvConnection;

  constructor(endpoint: HostPort, { clock, settings }: NodeHost) {
    this.host = endpoint.host;
    this.#link = new KvConnection({
      clock,
      operationTimeoutMs: settings.operationTimeoutMs,
      pauses: settings.pauses,
      open: (owner) => Connection.open({ ...settings, endpoint }, { ...owner, pushed: () => {} }),
    });
  }

  link(): KvConnection {
    return this.#link;
  }
}

/** How long an unused one stays open. */
const GUEST_KEPT_MS = 5_000;
const SWEEP_MS = 100;

export class Members {
  readonly #host: NodeHost;
  readonly #members = new Map<string, Member>();
  /** No longer masters, but with commands in flight. A server that comes back gets a new Member. */
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

  /** For a key on a server that does not own the key's slot yet. What is read there must not be cached. */
  guest(endpoint: HostPort): Route {
    const name = nameOfHost(endpoint);
    const guest = this.#guests.get(name) ?? new Guest(endpoint, this.#host);
    guest.usedAt = this.#host.clock.now();
    this.#guests.set(name, guest);
    this.#sweepLater();
    return guest;
  }

  /** Closes all others once their commands are answered. Returns whether there are any. */
  keep(owners: ReadonlySet<Member>): boolean {
    const until = this.#host.clock.now() + this.#host.settings.operationTimeoutMs;
    let hasLeavers = false;
    for (const [name, member] of this.#members) {
      if (owners.has(member)) continue;
      this.#members.delete(name);
      this.#leaving.set(member, until);
      hasLeavers = true;
    }
    if (hasLeavers) this.#sweepNow();
    return hasLeavers;
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

const isIdle = (link: KvConnection): boolean => link.waiting === 0 && (link.connection?.inFlight ?? 0) === 0;
