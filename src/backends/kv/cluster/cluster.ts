// Routes commands to the masters of a cluster and follows slots that migrate.
import type { HostPort } from "../../../core/address/address.ts";
import type { ScanItem, ScanPosition } from "../../../core/backend.ts";
import { ConnectionError, OperationTimeoutError } from "../../../core/errors.ts";
import { toError } from "../../../core/events.ts";
import { withDeadline } from "../../../core/resilience/with-deadline.ts";
import { disconnected } from "../../wire/connection-error.ts";
import type { CommandSender, Detour, Router } from "../commands/router.ts";
import type { ReplyError } from "../resp/reply.ts";
import type { Argument } from "../resp/writer.ts";
import type { Answer, Endpoint } from "../server/connection.ts";
import { KvNode, type NodeHost } from "../server/node.ts";
import { type CallHost, ClusterCall, ClusterRead, ParkedCalls, type Route } from "./call.ts";
import { scanCluster } from "./scan.ts";
import { slotOf, tagForSlot } from "./slots.ts";
import { type Redirect, redirectIn } from "./topology.ts";
import { ClusterView } from "./view.ts";

/** How old the topology may be for an operation that must reach every master. */
const RECENT_MS = 1_000;

export class ClusterServers implements Router, CallHost {
  readonly ahead: CommandSender;
  readonly clock: NodeHost["clock"];
  readonly operationTimeoutMs: number;
  readonly #host: NodeHost;
  readonly #view: ClusterView;
  readonly #parked = new ParkedCalls();
  #closed = false;

  constructor(seeds: readonly HostPort[], host: NodeHost) {
    this.clock = host.clock;
    this.operationTimeoutMs = host.settings.operationTimeoutMs;
    this.#host = host;
    this.#view = new ClusterView(seeds, host);
    const routes = this.#routesAhead();
    this.ahead = {
      send: (key, args, answer) => this.#start(slotOf(key), args, answer, routes),
      read: (key, isWatched, answer) =>
        this.#start(slotOf(key), new ClusterRead(key, isWatched), answer, routes),
    };
  }

  get nodes(): readonly KvNode[] {
    // A caller that only uses this list or the pushes of these servers sends nothing that a MOVED could answer.
    this.#view.refresh.relyOn();
    return this.#view.nodes;
  }

  /** Rejects if no master can be reached. If only some cannot, that is reported and only their keys fail. */
  async connect(): Promise<void> {
    const { connectTimeoutMs } = this.#host.settings;
    await withDeadline(this.clock, connectTimeoutMs, this.#connectAll(), () => {
      if (this.#view.nodes.some(isConnected)) return;
      throw new OperationTimeoutError(
        `no server of the cluster was ready within connect_timeout (${connectTimeoutMs / 1000} s)`,
      );
    });
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    const reason = disconnected();
    this.#view.close(reason);
    this.#parked.end(reason);
  }

  send(key: string, args: readonly Argument[], answer: Answer): void {
    this.#start(slotOf(key), args, answer);
  }

  read(key: string, isWatched: boolean, answer: Answer): void {
    this.#start(slotOf(key), new ClusterRead(key, isWatched), answer);
  }

  epoch(key: string, isProven = false): number {
    const slot = slotOf(key);
    const owner = this.#view.table.owner(slot);
    if (owner === undefined) return 0;
    this.#view.refresh.relyOn();
    return this.#view.table.epoch(slot, owner.node.epochOf(owner.link(slot), isProven));
  }

  async masters(): Promise<readonly KvNode[]> {
    if (this.#view.nodes.length === 0) await this.#view.refresh.next();
    else if (this.#view.refresh.ageMs > RECENT_MS) await this.#view.refresh.next().catch(() => {});
    if (this.#view.nodes.length === 0) throw new ConnectionError("no server of the cluster holds any slot");
    return this.#view.nodes;
  }

  async follow(refusal: ReplyError, from: Endpoint): Promise<Detour | undefined> {
    const redirect = redirectIn(refusal, (from as HostPort).host);
    if (redirect === undefined) throw refusal;
    if (refusal.code === "ASK") {
      // The master of the slot does not track what is read from the importing server.
      this.#view.table.revoke(redirect.slot);
      return this.visit(redirect.to);
    }
    if (!this.moved({ ...redirect, to: this.translate(redirect.to) })) await this.refreshTopology();
    return undefined;
  }

  visit(endpoint: HostPort): Detour {
    const to = this.translate(endpoint);
    const known = this.#view.members.find(to)?.node;
    if (known !== undefined) return { node: known, leave: () => {} };
    const node = new KvNode(() => to, this.#host);
    return { node, leave: () => node.close() };
  }

  /** The current masters of these slots, read from the cluster now. */
  async holders(slots: ReadonlySet<number>): Promise<readonly KvNode[]> {
    await this.#view.refresh.force();
    const masters = [...slots].map((slot) => this.#view.table.owner(slot)?.node);
    return [...new Set(masters)].filter((node) => node !== undefined);
  }

  scan(
    prefix: string,
    signal: AbortSignal | undefined,
    position?: ScanPosition,
  ): AsyncIterable<readonly ScanItem[]> {
    return scanCluster(this, prefix, signal, position);
  }

  isOn(key: string, node: KvNode): boolean {
    return this.#view.table.owner(slotOf(key))?.node === node;
  }

  /**
   * A hash tag for the lowest slot of this server: its successor has the same. It works as a suffix of any name without
   * braces, and a namespace path has none.
   */
  anchor(node: KvNode): string {
    const slot = this.#view.table.firstOf((owner) => owner.node === node);
    if (slot === undefined) throw new ConnectionError("the server no longer holds a slot of the cluster");
    return `{${tagForSlot(slot)}}`;
  }

  /** For its highest slot: resharding moves the lowest ones first. */
  spareAnchor(node: KvNode): string | undefined {
    const slot = this.#view.table.lastOf((owner) => owner.node === node);
    return slot === undefined ? undefined : `{${tagForSlot(slot)}}`;
  }

  translate(announced: HostPort): HostPort {
    return this.#host.settings.translate?.(announced) ?? announced;
  }

  route(slot: number): Route | undefined {
    return this.#view.table.owner(slot);
  }

  routeAsking({ slot, to }: Redirect): Route {
    // The master of the slot does not track what is read from the importing server.
    this.#view.table.revoke(slot);
    return this.#view.members.find(to) ?? this.#view.members.guest(to);
  }

  moved(redirect: Redirect): boolean {
    return this.#view.moved(redirect);
  }

  refreshSoon(): void {
    this.#view.refresh.soon();
  }

  refreshTopology(): Promise<void> {
    return this.#view.refresh.next();
  }

  searchMaster(): Promise<void> {
    return this.#view.search();
  }

  park(call: ClusterCall): void {
    this.#parked.add(call);
  }

  unpark(call: ClusterCall): void {
    this.#parked.delete(call);
  }

  #start(
    slot: number,
    command: readonly Argument[] | ClusterRead,
    answer: Answer,
    routes: CallHost = this,
  ): void {
    if (this.#closed) answer.reject(disconnected());
    else new ClusterCall(routes, slot, command, answer).start();
  }

  /** Uses connections that need no preparation. */
  #routesAhead(): CallHost {
    return {
      clock: this.clock,
      operationTimeoutMs: this.operationTimeoutMs,
      translate: (announced) => this.translate(announced),
      route: (slot) => {
        const owner = this.#view.table.owner(slot);
        return owner === undefined ? undefined : this.#view.members.guest(owner.endpoint);
      },
      routeAsking: ({ to }) => this.#view.members.guest(to),
      moved: (redirect) => this.moved(redirect),
      refreshSoon: () => this.refreshSoon(),
      refreshTopology: () => this.refreshTopology(),
      searchMaster: () => this.searchMaster(),
      park: (call) => this.park(call),
      unpark: (call) => this.unpark(call),
    };
  }

  async #connectAll(): Promise<void> {
    if (this.#view.nodes.length === 0) await this.#view.refresh.force();
    const attempts = await Promise.allSettled(this.#view.nodes.map((node) => node.connect()));
    const failures = attempts.flatMap((attempt) => (attempt.status === "rejected" ? [attempt.reason] : []));
    if (failures.length === attempts.length) throw failures[0] ?? disconnected();
    for (const failure of failures) this.#host.report(toError(failure));
  }
}

const isConnected = (node: KvNode): boolean => node.links.some(({ connection }) => connection !== undefined);
