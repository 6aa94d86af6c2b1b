// Routes all commands to one server: a fixed one, or the current master of the sentinels.
import type { ScanItem, ScanPosition } from "../../../core/backend.ts";
import type { Reply } from "../resp/reply.ts";
import type { Argument } from "../resp/writer.ts";
import type { Answer, Endpoint } from "../server/connection.ts";
import { KvNode, type NodeHost } from "../server/node.ts";
import { type Router, renewIfReplica } from "./router.ts";
import { scanNode } from "./scan.ts";

export class SingleServer implements Router {
  readonly nodes: readonly [KvNode];
  readonly #node: KvNode;

  constructor(where: () => Endpoint | Promise<Endpoint>, host: NodeHost) {
    this.#node = new KvNode(where, host);
    this.nodes = [this.#node];
  }

  connect(): Promise<void> {
    return this.#node.connect();
  }

  close(): void {
    this.#node.close();
  }

  send(key: string, args: readonly Argument[], answer: Answer): void {
    this.#node.link(key).send(args, new MasterAnswer(answer, this.#node));
  }

  read(key: string, isWatched: boolean, answer: Answer): void {
    this.#node.link(key).read(key, isWatched, answer);
  }

  readMany(keys: readonly string[], isWatched: boolean, answer: Answer): boolean {
    const [link, other] = this.#node.links;
    return other === undefined && link?.readMany(keys, isWatched, answer) === true;
  }

  epoch(key: string, isProven = false): number {
    return this.#node.epochOf(this.#node.link(key), isProven);
  }

  async masters(): Promise<readonly KvNode[]> {
    return this.nodes;
  }

  scan(
    prefix: string,
    signal: AbortSignal | undefined,
    position?: ScanPosition,
  ): AsyncIterable<readonly ScanItem[]> {
    return scanNode(this.#node, { prefix, signal, elsewhere: this, ...position });
  }

  isOn(): boolean {
    return true;
  }

  anchor(): string {
    return "";
  }
}

/** A server that has become a replica refuses writes: then the master is looked up again. */
class MasterAnswer implements Answer {
  readonly #answer: Answer;
  readonly #node: KvNode;

  constructor(answer: Answer, node: KvNode) {
    this.#answer = answer;
    this.#node = node;
  }

  get due(): number | undefined {
    return this.#answer.due;
  }

  resolve(reply: Reply): unknown {
    return this.#answer.resolve(reply);
  }

  reject(error: Error): void {
    renewIfReplica(this.#node, error);
    this.#answer.reject(error);
  }
}
