// The known topology of a cluster: the master of each slot, from CLUSTER SLOTS and MOVED redirections.
import type { HostPort } from "../../../core/address/address.ts";
import { isNotMaster } from "../server/connection-error.ts";
import type { KvNode, NodeHost } from "../server/node.ts";
import { TopologyLookup, type TopologySource } from "./lookup.ts";
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
  /** The target of the last MOVED, or a master that became a replica: the best informed about these slots. */
  #bestInformed: HostPort | undefined;
  /** Slots redirected by MOVED since the current lookup began; its answer may be older. */
  readonly #movedDuringLookup = new Set<number>();
  /** A server may have lost its last slot since the list of nodes was built. */
  #hasMoved = false;
  readonly #partial: PartialTopology;
  #lookup: TopologyLookup | undefined;
  #closed = false;

  constructor(seeds: readonly HostPort[], host: NodeHost) {
    this.#host = host;
    this.#seeds = seeds;
    this.#partial = new PartialTopology(host.clock);
    this.members = new Members({
      ...host,
      down: (node, error) => {
        if (isNotMaster(error)) this.#demoted(node);
        else this.refresh.soon();
        host.down(node, error);
      },
    });
    this.refresh = new TopologyRefresh(host.clock, () => this.#lookUp());
  }

  /** The masters that own slots. */
  get nodes(): readonly KvNode[] {
    return this.#nodes;
  }

  /** Applies a MOVED redirection. False if its target is not known yet. */
  moved({ slot, to }: Redirect): boolean {
    const member = this.members.find(to);
    if (member !== undefined && this.table.owner(slot) === member) return true;
    this.#bestInformed = to;
    this.refresh.soon(true);
    if (member === undefined) return false;
    this.#movedDuringLookup.add(slot);
    this.#hasMoved = true;
    if (this.table.assign(slot, member)) this.#host.changed(undefined);
    return true;
  }

  /** Resolves after a lookup for a slot without a known master. */
  search(): Promise<void> {
    this.#partial.search();
    return this.refresh.next();
  }

  close(reason: Error): void {
    this.#closed = true;
    this.refresh.close(reason);
    this.#lookup?.end(reason);
    this.members.close();
    for (let slot = 0; slot < SLOTS; slot++) this.table.assign(slot, undefined);
    this.#nodes = [];
  }

  /** It knows its successor, of which the other servers may not have heard yet. */
  #demoted(node: KvNode): void {
    const member = this.members.all().find((each) => each.node === node);
    if (member !== undefined) this.#bestInformed = member.endpoint;
    this.refresh.soon(true);
  }

  /** Reads the topology from the cluster; returns whether anything was new. */
  async #lookUp(): Promise<boolean> {
    this.#movedDuringLookup.clear();
    const { clock, settings } = this.#host;
    const lookup = new TopologyLookup(this.#sources(), {
      clock,
      settings,
      enoughSlots: this.#partial.required(),
    });
    this.#lookup = lookup;
    this.#bestInformed = undefined;
    try {
      const topology = await lookup.answer;
      this.#partial.found(slotsIn(topology), lookup.hasAllAnswers);
      return this.#apply(topology);
    } finally {
      this.#lookup = undefined;
    }
  }

  /** The servers to query, the likeliest to answer first. */
  #sources(): readonly TopologySource[] {
    const members = this.members.all();
    const connected = members
      .filter(({ connection }) => connection !== undefined)
      .sort((one, other) => other.provenAt - one.provenAt);
    const endpoints = [
      ...(this.#bestInformed === undefined ? [] : [this.#bestInformed]),
      ...connected.map(({ endpoint }) => endpoint),
      ...this.#seeds,
      ...members.map(({ endpoint }) => endpoint),
      ...this.#replicas,
    ];
    const distinct = new Map(endpoints.map((endpoint) => [nameOfHost(endpoint), endpoint]));
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
    return this.#assign(next, newcomers);
  }

  #assign(next: readonly (Member | undefined)[], newcomers: ReadonlySet<Member>): boolean {
    let isNew = newcomers.size > 0 || this.#hasMoved;
    let wasReliedOn = false;
    for (let slot = 0; slot < SLOTS; slot++) {
      const owner = next[slot];
      const before = this.table.owner(slot);
      if (before === owner || (this.#movedDuringLookup.has(slot) && before !== undefined)) continue;
      if (owner !== undefined && newcomers.has(owner)) inheritProof(owner, before);
      wasReliedOn = this.table.assign(slot, owner) || wasReliedOn;
      isNew = true;
    }
    if (!isNew) return false;
    this.#hasMoved = false;
    const owners = this.table.owners();
    this.#nodes = [...owners].map(({ node }) => node);
    if (this.members.keep(owners) || wasReliedOn) this.#host.changed(undefined);
    for (const { node } of newcomers) if (node.lastProvenAt > 0) connectSoon(node);
    return true;
  }
}

/** A successor may lack acknowledged invalidations: connecting repeats them, even if no caller needs the server yet. */
function connectSoon(node: KvNode): void {
  // On failure the node retries on its own.
  node.connect().catch(() => {});
}

/** A successor inherits the last proof of life of the server before it, the earliest one if it succeeds several. */
function inheritProof(newcomer: Member, before: Member | undefined): void {
  const { node } = newcomer;
  const provenAt = before?.provenAt ?? 0;
  if (provenAt > 0)
    node.lastProvenAt = node.lastProvenAt === 0 ? provenAt : Math.min(node.lastProvenAt, provenAt);
}
