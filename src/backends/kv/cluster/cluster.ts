// A store on a cluster: every key is on the master of its slot, wherever that slot goes.
import type { HostPort } from "../../../core/address/address.ts";
import type { ScanItem } from "../../../core/backend.ts";
import { ConnectionError, OperationTimeoutError } from "../../../core/errors.ts";
import { toError } from "../../../core/events.ts";
import { withDeadline } from "../../../core/resilience/with-deadline.ts";
import type { CommandSender } from "../commands/commands.ts";
import type { Router } from "../commands/router.ts";
import type { Argument } from "../resp/writer.ts";
import type { Answer } from "../server/connection.ts";
import { disconnected } from "../server/connection-error.ts";
import type { KvNode, NodeHost } from "../server/node.ts";
import { type CallHost, ClusterCall, ClusterRead, type Route } from "./call.ts";
import { ParkedCalls } from "./parked-calls.ts";
import { scanCluster } from "./scan.ts";
import { slotOf, tagForSlot } from "./slots.ts";
import type { Redirect } from "./topology.ts";
import { ClusterView } from "./view.ts";

/** How old the list of masters may be for work that must not miss one. */
const RECENT_MS = 1_000;

export class ClusterServers implements Router, CallHost {
  readonly ahead: CommandSender;
  readonly clock: NodeHost["clock"];
  readonly operationTimeoutMs: number;
  readonly #host: NodeHost;
  readonly #view: ClusterView;
  readonly #held = new ParkedCalls();
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
    // Whoever goes by this list, or by what these servers push, would not notice a move by himself.
    this.#view.refresh.relyOn();
    return this.#view.nodes;
  }

  /** Rejects if no master can be reached; one of several that cannot is reported, and its keys alone fail. */
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
    this.#held.end(reason);
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
    if (this.#view.nodes.length === 0) await this.#view.refresh.done();
    else if (this.#view.refresh.ageMs > RECENT_MS) await this.#view.refresh.done().catch(() => {});
    if (this.#view.nodes.length === 0) throw new ConnectionError("no server of the cluster holds any slot");
    return this.#view.nodes;
  }

  /** The servers that hold any of these slots, as the cluster tells it now. */
  async holders(slots: ReadonlySet<number>): Promise<readonly KvNode[]> {
    await this.#view.refresh.once();
    const held = [...slots].map((slot) => this.#view.table.owner(slot)?.node);
    return [...new Set(held)].filter((node) => node !== undefined);
  }

  scan(prefix: string, signal: AbortSignal | undefined): AsyncIterable<readonly ScanItem[]> {
    return scanCluster(this, prefix, signal);
  }

  isOn(key: string, node: KvNode): boolean {
    return this.#view.table.owner(slotOf(key))?.node === node;
  }

  /**
   * A hash tag of the lowest slot of this server: whoever takes the server's place has the same. It works at the end of
   * any name without braces, and the spelling of a namespace has none.
   */
  anchor(node: KvNode): string {
    const slot = this.#view.table.firstOf((owner) => owner.node === node);
    if (slot === undefined) throw new ConnectionError("the server holds no slot of the cluster any more");
    return `{${tagForSlot(slot)}}`;
  }

  route(slot: number): Route | undefined {
    return this.#view.table.owner(slot);
  }

  routeAsking({ slot, to }: Redirect): Route {
    // What is read there is not told of by the server that holds the slot.
    this.#view.table.unsettle(slot);
    return this.#view.members.find(to) ?? this.#view.members.guest(to);
  }

  moved(redirect: Redirect): boolean {
    return this.#view.moved(redirect);
  }

  doubt(): void {
    this.#view.refresh.soon();
  }

  learn(): Promise<void> {
    return this.#view.refresh.done();
  }

  search(): Promise<void> {
    return this.#view.search();
  }

  hold(call: ClusterCall): void {
    this.#held.add(call);
  }

  release(call: ClusterCall): void {
    this.#held.delete(call);
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

  /** Over connections that nobody has to meet first. */
  #routesAhead(): CallHost {
    return {
      clock: this.clock,
      operationTimeoutMs: this.operationTimeoutMs,
      route: (slot) => {
        const owner = this.#view.table.owner(slot);
        return owner === undefined ? undefined : this.#view.members.guest(owner.endpoint);
      },
      routeAsking: ({ to }) => this.#view.members.guest(to),
      moved: (redirect) => this.moved(redirect),
      doubt: () => this.doubt(),
      learn: () => this.learn(),
      search: () => this.search(),
      hold: (call) => this.hold(call),
      release: (call) => this.release(call),
    };
  }

  async #connectAll(): Promise<void> {
    if (this.#view.nodes.length === 0) await this.#view.refresh.once();
    const attempts = await Promise.allSettled(this.#view.nodes.map((node) => node.connect()));
    const failures = attempts.flatMap((attempt) => (attempt.status === "rejected" ? [attempt.reason] : []));
    if (failures.length === attempts.length) throw failures[0] ?? disconnected();
    for (const failure of failures) this.#host.report(toError(failure));
  }
}

const isConnected = (node: KvNode): boolean => node.links.some(({ connection }) => connection !== undefined);
