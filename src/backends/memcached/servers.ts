// The servers of the store: which one a key is on, and whose time counts.
import type { MemcachedAddress } from "../../core/address/address.ts";
import type { BackendHost } from "../../core/backend.ts";
import { anchoredTo, anchorFor } from "./anchor.ts";
import { MemcachedCommands, type Places } from "./commands.ts";
import type { Connection } from "./connection.ts";
import { memoryUsage } from "./fill.ts";
import { ItemKeys } from "./item-key.ts";
import { MemcachedNode, type Place } from "./node.ts";
import { nameOf, Ring } from "./ring.ts";

/** Servers that take longer to be met are not waited for when others are there. */
const SHARE_OF_PATIENCE = 0.5;

export class Servers implements Places {
  /** In the order of the ring. */
  readonly nodes: readonly MemcachedNode[];
  readonly records: MemcachedCommands;
  readonly #ring: Ring;
  readonly #host: BackendHost;

  constructor({ hosts }: MemcachedAddress, host: BackendHost) {
    const { clock, operationTimeoutMs, connectTimeoutMs, poolSize } = host;
    this.#ring = new Ring(hosts);
    this.#host = host;
    const keys = new ItemKeys(this.#ring.fingerprint);
    const settings = { clock, operationTimeoutMs, connectTimeoutMs, keys };
    const byName = new Map(hosts.map((endpoint) => [nameOf(endpoint), endpoint]));
    this.nodes = this.#ring.names.map((name) => {
      const endpoint = byName.get(name) as MemcachedAddress["hosts"][0];
      return new MemcachedNode(endpoint, {
        clock,
        poolSize,
        settings,
        met: (node, connection) => this.#met(node, connection),
      });
    });
    this.records = new MemcachedCommands(this);
  }

  /**
   * Resolves when every server is there, or some are and the others keep one waiting: these are met when they come.
   * Rejects when none is.
   */
  async connect(): Promise<void> {
    const attempts = this.nodes.map((node) => node.connect());
    const all = Promise.allSettled(attempts);
    if (this.nodes.length > 1) {
      const { clock, operationTimeoutMs } = this.#host;
      const patience = new Promise<void>((resolve) => {
        const timer = clock.after(operationTimeoutMs * SHARE_OF_PATIENCE, resolve);
        timer.hold?.(true);
        all.then(
          () => timer.cancel(),
          () => {},
        );
      });
      await Promise.race([all, patience]);
    }
    await Promise.any(attempts).catch((error: AggregateError) => {
      throw error.errors[0];
    });
  }

  fill(): Promise<number | undefined> {
    return memoryUsage(this.nodes);
  }

  close(): void {
    for (const node of this.nodes) node.close();
  }

  placeOf(key: string): Place {
    return this.#nodeOf(key).placeOf(key);
  }

  isTimeClose(): boolean {
    return this.reference()?.time.isClose(this.#host.clock.coarse()) === true;
  }

  /**
   * Whose time is the store's: the first of the list that has told it, the same one for every process. One that has been
   * away for so long that its time is not known any more is passed over.
   */
  reference(): MemcachedNode | undefined {
    const now = this.#host.clock.coarse();
    let first: MemcachedNode | undefined;
    for (const node of this.nodes) {
      if (node.time.askedAt === 0) continue;
      node.useTime();
      if (node.time.isKnown(now)) return node;
      first ??= node;
    }
    return first;
  }

  #nodeOf(key: string): MemcachedNode {
    const { nodes } = this;
    if (nodes.length === 1) return nodes[0] as MemcachedNode;
    const anchored = key.includes("!") ? anchoredTo(key) : undefined;
    const noted = anchored === undefined ? undefined : nodes.find(({ name }) => name === anchored);
    return noted ?? (nodes[this.#ring.ownerOf(key)] as MemcachedNode);
  }

  /**
   * Whether the list of servers has changed since this one was last used. Then another list may have been in use
   * meanwhile, and what was invalidated by its users was not invalidated here: the core replaces the namespace's stamp.
   */
  async #met(node: MemcachedNode, connection: Connection): Promise<void> {
    const records = new MemcachedCommands({
      placeOf: (key) => {
        const owner = this.#nodeOf(key);
        const carrier = owner === node ? throughOnly(connection) : owner.ahead;
        return { carrier, serverNow: () => owner.now() };
      },
      isTimeClose: () => this.isTimeClose(),
    });
    const { clock } = this.#host;
    const now = (): number => (this.reference() ?? node).now();
    await this.#host.onServer({
      anchor: anchorFor(node.name),
      runId: this.#ring.fingerprint.toString("hex"),
      // Later than any note: it was never a replica of the server that the note names.
      startedAt: Number.POSITIVE_INFINITY,
      lastProvenAt: clock.now(),
      records: {
        now,
        read: (key) => records.read(key),
        write: (item) => records.write(item),
        take: (key) => records.take(key),
      },
      owns: (key) => this.#nodeOf(key) === node,
    });
  }
}

function throughOnly(connection: Connection): Place["carrier"] {
  return { connection, whenUp: (run) => run(connection) };
}
