// What is known of a cluster: who holds each slot, learnt from its servers and from what they say of moves.
import type { HostPort } from "../../../core/address/address.ts";
import type { KvNode, NodeHost } from "../server/node.ts";
import { TopologyLookup, type Witness } from "./lookup.ts";
import { type Member, Members } from "./members.ts";
import { PartialTopology } from "./partial-topology.ts";
import { TopologyRefresh } from "./refresh.ts";
import { SlotTable } from "./slot-table.ts";
import { SLOTS } from "./slots.ts";
import { nameOfHost, type Redirect, slotsIn, type Topology } from "./topology.ts";

export class ClusterView {
  readonly table = new SlotTable<Member>();
  readonly members: Members;
  readonly refresh: TopologyRefresh;
  readonly #host: NodeHost;
  readonly #seeds: readonly HostPort[];
  #nodes: readonly KvNode[] = [];
  #replicas: readonly HostPort[] = [];
  /** Named by the last MOVED: nobody knows better what it holds. */
  #informant: HostPort | undefined;
  /** What servers said about slots since the present lookup began; its answer may be older. */
  readonly #movedMeanwhile = new Set<number>();
  /** A server may have lost its last slot since the list of nodes was made. */
  #hasMoved = false;
  readonly #enough: PartialTopology;
  #lookup: TopologyLookup | undefined;
  #closed = false;

  constructor(seeds: readonly HostPort[], host: NodeHost) {
    this.#host = host;
    this.#seeds = seeds;
    this.#enough = new PartialTopology(host.clock);
    this.members = new Members({
      ...host,
      down: (node, error) => {
        this.refresh.soon();
        host.down(node, error);
      },
    });
    this.refresh = new TopologyRefresh(host.clock, () => this.#look());
  }

  /** Of the servers that hold slots. */
  get nodes(): readonly KvNode[] {
    return this.#nodes;
  }

  /** A server says that another one holds a slot. False where that one has to be got to know first. */
  moved({ slot, to }: Redirect): boolean {
    const member = this.members.find(to);
    if (member !== undefined && this.table.owner(slot) === member) return true;
    this.#informant = to;
    this.refresh.soon(true);
    if (member === undefined) return false;
    this.#movedMeanwhile.add(slot);
    this.#hasMoved = true;
    if (this.table.give(slot, member)) this.#host.changed(undefined);
    return true;
  }

  /** Resolves after a look for a slot that nobody is known to hold. */
  search(): Promise<void> {
    this.#enough.search();
    return this.refresh.done();
  }

  close(reason: Error): void {
    this.#closed = true;
    this.refresh.close(reason);
    this.#lookup?.end(reason);
    this.members.close();
    for (let slot = 0; slot < SLOTS; slot++) this.table.give(slot, undefined);
    this.#nodes = [];
  }

  /** Asks the cluster for its topology; returns whether anything was new. */
  async #look(): Promise<boolean> {
    this.#movedMeanwhile.clear();
    const { clock, settings } = this.#host;
    const lookup = new TopologyLookup(this.#witnesses(), {
      clock,
      settings,
      enoughSlots: this.#enough.wanted(),
    });
    this.#lookup = lookup;
    this.#informant = undefined;
    try {
      const topology = await lookup.answer;
      this.#enough.found(slotsIn(topology), lookup.hasHeardAll);
      return this.#apply(topology);
    } finally {
      this.#lookup = undefined;
    }
  }

  /** Who can be asked, the likeliest to answer first. */
  #witnesses(): readonly Witness[] {
    const members = this.members.all();
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
      connection: this.members.find(endpoint)?.connection,
    }));
  }

  #apply({ ranges, replicas }: Topology): boolean {
    if (this.#closed) return false;
    this.#replicas = replicas;
    const next = new Array<Member | undefined>(SLOTS).fill(undefined);
    const newcomers = new Set<Member>();
    for (const { first, last, master } of ranges) {
      let member = this.members.find(master);
      if (member === undefined) {
        member = this.members.add(master);
        newcomers.add(member);
      }
      next.fill(member, first, last + 1);
    }
    return this.#take(next, newcomers);
  }

  #take(next: readonly (Member | undefined)[], newcomers: ReadonlySet<Member>): boolean {
    let isNew = newcomers.size > 0 || this.#hasMoved;
    let wasReliedOn = false;
    for (let slot = 0; slot < SLOTS; slot++) {
      const owner = next[slot];
      const before = this.table.owner(slot);
      if (before === owner || (this.#movedMeanwhile.has(slot) && before !== undefined)) continue;
      if (owner !== undefined && newcomers.has(owner)) succeed(owner, before);
      wasReliedOn = this.table.give(slot, owner) || wasReliedOn;
      isNew = true;
    }
    if (!isNew) return false;
    this.#hasMoved = false;
    const owners = this.table.owners();
    this.#nodes = [...owners].map(({ node }) => node);
    if (this.members.keep(owners) || wasReliedOn) this.#host.changed(undefined);
    for (const { node } of newcomers) if (node.lastProvenAt > 0) meetSoon(node);
    return true;
  }
}

/** It may lack what this process was told to be done: that is repeated as soon as they meet, also if nobody needs it now. */
function meetSoon(node: KvNode): void {
  // Where it fails, the node tries again by itself.
  node.connect().catch(() => {});
}

/** In the place of another server, one is known as long as that one was: of several, as long as all. */
function succeed(newcomer: Member, before: Member | undefined): void {
  const { node } = newcomer;
  const provenAt = before?.provenAt ?? 0;
  if (provenAt > 0)
    node.lastProvenAt = node.lastProvenAt === 0 ? provenAt : Math.min(node.lastProvenAt, provenAt);
}
