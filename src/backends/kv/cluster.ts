// A store on a cluster: every key is on the master of its slot, wherever that slot goes.
import type { HostPort } from "../../core/address.ts";
import { withDeadline } from "../../core/deadline.ts";
import { ConnectionError, OperationTimeoutError } from "../../core/errors.ts";
import { toError } from "../../core/events.ts";
import { Call, type CallHost, type Route } from "./cluster-call.ts";
import { HeldCalls } from "./cluster-held.ts";
import { Lookup, type Witness } from "./cluster-lookup.ts";
import { type Member, Members } from "./cluster-members.ts";
import { disconnected, Refresh } from "./cluster-refresh.ts";
import { SlotTable } from "./cluster-table.ts";
import { nameOfHost, type Redirect, type Topology } from "./cluster-topology.ts";
import type { Answer } from "./connection.ts";
import { keyArgument } from "./key-bytes.ts";
import type { KvNode, NodeHost } from "./node.ts";
import type { Commands } from "./records.ts";
import type { Argument } from "./resp-writer.ts";
import type { Router } from "./router.ts";
import { SLOTS, slotOf, tagForSlot } from "./slots.ts";

/** How old the list of masters may be for work that must not miss one. */
const RECENT_MS = 1_000;

export class ClusterServers implements Router, CallHost {
  readonly ahead: Commands;
  readonly clock: NodeHost["clock"];
  readonly operationTimeoutMs: number;
  readonly #host: NodeHost;
  readonly #seeds: readonly HostPort[];
  readonly #table = new SlotTable<Member>();
  readonly #members: Members;
  readonly #refresh: Refresh;
  readonly #held = new HeldCalls();
  #nodes: readonly KvNode[] = [];
  #replicas: readonly HostPort[] = [];
  /** Named by the last MOVED: nobody knows better what it holds. */
  #informant: HostPort | undefined;
  /** What servers said about slots since the present lookup began; its answer may be older. */
  readonly #movedMeanwhile = new Set<number>();
  #lookup: Lookup | undefined;
  #closed = false;

  constructor(seeds: readonly HostPort[], host: NodeHost) {
    this.clock = host.clock;
    this.operationTimeoutMs = host.settings.operationTimeoutMs;
    this.#host = host;
    this.#seeds = seeds;
    this.#members = new Members({
      ...host,
      down: (node, error) => {
        this.#refresh.soon();
        host.down(node, error);
      },
    });
    this.#refresh = new Refresh(host.clock, () => this.#look());
    const routes = this.#routesAhead();
    this.ahead = {
      send: (key, args, answer) => this.#start(slotOf(key), args, answer, routes),
      read: (key, answer) => this.#start(slotOf(key), keyArgument(key), answer, routes),
    };
  }

  get nodes(): readonly KvNode[] {
    // Whoever goes by this list, or by what these servers push, would not notice a move by himself.
    this.#refresh.relyOn();
    return this.#nodes;
  }

  /** Rejects if no master can be reached; one of several that cannot is reported, and its keys alone fail. */
  async connect(): Promise<void> {
    const { connectTimeoutMs } = this.#host.settings;
    await withDeadline(this.clock, connectTimeoutMs, this.#connectAll(), () => {
      if (this.#nodes.some(isConnected)) return;
      throw new OperationTimeoutError(
        `no server of the cluster was ready within connect_timeout (${connectTimeoutMs / 1000} s)`,
      );
    });
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    const reason = disconnected();
    this.#refresh.close(reason);
    this.#lookup?.end(reason);
    this.#members.close();
    this.#held.end(reason);
    for (let slot = 0; slot < SLOTS; slot++) this.#table.give(slot, undefined);
    this.#nodes = [];
  }

  send(key: string, args: readonly Argument[], answer: Answer): void {
    this.#start(slotOf(key), args, answer);
  }

  read(key: string, answer: Answer): void {
    this.#start(slotOf(key), keyArgument(key), answer);
  }

  epoch(key: string): number {
    const slot = slotOf(key);
    const owner = this.#table.owner(slot);
    if (owner === undefined) return 0;
    this.#refresh.relyOn();
    return this.#table.epoch(slot, owner.node.epochOf(owner.link(slot)));
  }

  async masters(): Promise<readonly KvNode[]> {
    if (this.#nodes.length === 0) await this.#refresh.done();
    else if (this.#refresh.ageMs > RECENT_MS) await this.#refresh.done().catch(() => {});
    if (this.#nodes.length === 0) throw new ConnectionError("no server of the cluster holds any slot");
    return this.#nodes;
  }

  isOn(key: string, node: KvNode): boolean {
    return this.#table.owner(slotOf(key))?.node === node;
  }

  /**
   * A hash tag of the lowest slot of this server: whoever takes the server's place has the same. It works at the end of
   * any name without braces, and the spelling of a namespace has none.
   */
  anchor(node: KvNode): string {
    const slot = this.#table.firstOf((owner) => owner.node === node);
    if (slot === undefined) throw new ConnectionError("the server holds no slot of the cluster any more");
    return `{${tagForSlot(slot)}}`;
  }

  route(slot: number): Route | undefined {
    return this.#table.owner(slot);
  }

  routeAsking({ slot, to }: Redirect): Route {
    // What is read there is not told of by the server that holds the slot.
    this.#table.unsettle(slot);
    return this.#members.find(to) ?? this.#members.guest(to);
  }

  moved({ slot, to }: Redirect): boolean {
    const member = this.#members.find(to);
    if (member !== undefined && this.#table.owner(slot) === member) return true;
    this.#informant = to;
    this.#refresh.soon(true);
    if (member === undefined) return false;
    this.#movedMeanwhile.add(slot);
    if (this.#table.give(slot, member)) this.#host.changed(undefined);
    return true;
  }

  doubt(): void {
    this.#refresh.soon();
  }

  learn(): Promise<void> {
    return this.#refresh.done();
  }

  hold(call: Call): void {
    this.#held.add(call);
  }

  release(call: Call): void {
    this.#held.delete(call);
  }

  #start(
    slot: number,
    command: readonly Argument[] | Argument,
    answer: Answer,
    routes: CallHost = this,
  ): void {
    if (this.#closed) answer.reject(disconnected());
    else new Call(routes, slot, command, answer).start();
  }

  /** Over connections that nobody has to meet first. */
  #routesAhead(): CallHost {
    return {
      clock: this.clock,
      operationTimeoutMs: this.operationTimeoutMs,
      route: (slot) => {
        const owner = this.#table.owner(slot);
        return owner === undefined ? undefined : this.#members.guest(owner.endpoint);
      },
      routeAsking: ({ to }) => this.#members.guest(to),
      moved: (redirect) => this.moved(redirect),
      doubt: () => this.doubt(),
      learn: () => this.learn(),
      hold: (call) => this.hold(call),
      release: (call) => this.release(call),
    };
  }

  async #connectAll(): Promise<void> {
    if (this.#nodes.length === 0) await this.#refresh.once();
    const attempts = await Promise.allSettled(this.#nodes.map((node) => node.connect()));
    const failures = attempts.flatMap((attempt) => (attempt.status === "rejected" ? [attempt.reason] : []));
    if (failures.length === attempts.length) throw failures[0] ?? disconnected();
    for (const failure of failures) this.#host.report(toError(failure));
  }

  /** Asks the cluster for its topology; returns whether anything was new. */
  async #look(): Promise<boolean> {
    this.#movedMeanwhile.clear();
    this.#lookup = new Lookup(this.#witnesses(), { clock: this.clock, settings: this.#host.settings });
    this.#informant = undefined;
    try {
      return this.#apply(await this.#lookup.answer);
    } finally {
      this.#lookup = undefined;
    }
  }

  /** Who can be asked, the likeliest to answer first. */
  #witnesses(): readonly Witness[] {
    const members = this.#members.all();
    const connected = members
      .filter(({ connection }) => connection !== undefined)
      .sort((one, other) => other.provenAt - one.provenAt);
    const places = [
      ...(this.#informant === undefined ? [] : [this.#informant]),
      ...connected.map(({ endpoint }) => endpoint),
      ...this.#seeds,
      ...members.map(({ endpoint }) => endpoint),
      ...this.#replicas,
    ];
    const distinct = new Map(places.map((place) => [nameOfHost(place), place]));
    return [...distinct.values()].map((endpoint) => ({
      endpoint,
      connection: this.#members.find(endpoint)?.connection,
    }));
  }

  #apply({ ranges, replicas }: Topology): boolean {
    if (this.#closed) return false;
    this.#replicas = replicas;
    const next = new Array<Member | undefined>(SLOTS).fill(undefined);
    const newcomers = new Set<Member>();
    for (const { first, last, master } of ranges) {
      let member = this.#members.find(master);
      if (member === undefined) {
        member = this.#members.add(master);
        newcomers.add(member);
      }
      next.fill(member, first, last + 1);
    }
    return this.#take(next, newcomers);
  }

  #take(next: readonly (Member | undefined)[], newcomers: ReadonlySet<Member>): boolean {
    let isNew = newcomers.size > 0;
    let wasReliedOn = false;
    for (let slot = 0; slot < SLOTS; slot++) {
      const owner = next[slot];
      const before = this.#table.owner(slot);
      if (before === owner || (this.#movedMeanwhile.has(slot) && before !== undefined)) continue;
      if (owner !== undefined && newcomers.has(owner)) succeed(owner, before);
      wasReliedOn = this.#table.give(slot, owner) || wasReliedOn;
      isNew = true;
    }
    if (!isNew) return false;
    const owners = this.#table.owners();
    this.#nodes = [...owners].map(({ node }) => node);
    if (this.#members.keep(owners) || wasReliedOn) this.#host.changed(undefined);
    return true;
  }
}

const isConnected = (node: KvNode): boolean => node.links.some(({ connection }) => connection !== undefined);

/** In the place of another server, one is known as long as that one was: of several, as long as all. */
function succeed(newcomer: Member, before: Member | undefined): void {
  const { node } = newcomer;
  const provenAt = before?.provenAt ?? 0;
  if (provenAt > 0)
    node.lastProvenAt = node.lastProvenAt === 0 ? provenAt : Math.min(node.lastProvenAt, provenAt);
}
