// A cluster of scripted servers in the test's own process, and a client of it.
import { ClusterServers } from "../../../src/backends/kv/cluster/cluster.ts";
import { slotOf } from "../../../src/backends/kv/cluster/slots.ts";
import type { Reply } from "../../../src/backends/kv/resp/reply.ts";
import type { Argument } from "../../../src/backends/kv/resp/writer.ts";
import type { NodeHost } from "../../../src/backends/kv/server/node.ts";
import type { HostPort } from "../../../src/core/address/address.ts";
import { systemClock } from "../../../src/core/clock.ts";
import { bulk, type FakeClient, FakeServer, greet } from "./fake-server.ts";
import { type NodeHostOptions, nodeHost } from "./node-host.ts";

/** Slots and their owners, as a server reports them; a host of null is one that the server does not know. */
export type Row = readonly [first: number, last: number, ...servers: { host: string | null; port: number }[]];

/** What a scripted server answers to commands about keys; undefined: nothing. */
export type Behaviour = (command: readonly string[], client: FakeClient) => string | undefined;

export const OK = "+OK\r\n";
export const NOTHING = "_\r\n";
export const LAST = 16_383;

export class ScriptedServer {
  readonly fake: FakeServer;
  rows: readonly Row[] = [];
  behave: Behaviour = () => OK;

  private constructor(fake: FakeServer) {
    this.fake = fake;
    fake.script = (command, client) => {
      if (command[0] === "CLUSTER")
        return command[1] === "MYID" ? bulk(`id${fake.port}`) : slotsReply(this.rows);
      return greet(command, client) ?? this.behave(command, client);
    };
  }

  static async start(): Promise<ScriptedServer> {
    return new ScriptedServer(await FakeServer.start());
  }

  get place(): HostPort {
    return this.fake.endpoint;
  }

  /** What it was sent about keys, and ASKING. */
  get keyCommands(): readonly (readonly string[])[] {
    const others = ["HELLO", "SELECT", "CLIENT", "PING", "TIME", "INFO", "CLUSTER"];
    return this.fake.commands.filter(([name]) => !others.includes(name ?? ""));
  }

  get timesAskedForSlots(): number {
    return this.fake.commands.filter(([name, what]) => name === "CLUSTER" && what === "SLOTS").length;
  }
}

function slotsReply(rows: readonly Row[]): string {
  const list = rows.map(([first, last, ...servers]) => {
    const parts = servers.map(({ host, port }) => {
      const name = host === null ? NOTHING : bulk(host);
      return `*3\r\n${name}:${port}\r\n${bulk(`id${port}`)}`;
    });
    return `*${2 + parts.length}\r\n:${first}\r\n:${last}\r\n${parts.join("")}`;
  });
  return `*${list.length}\r\n${list.join("")}`;
}

export interface SceneOptions extends Omit<NodeHostOptions, "clock"> {
  readonly poolSize?: number;
  /** A server is not used before this resolves. */
  readonly met?: NodeHost["onServer"];
  /** Of pauses; 0 makes them shortest, -1 leaves them out. */
  readonly random?: number;
  /** Milliseconds that the clock is ahead. */
  readonly ahead?: () => number;
}

/** Servers that know the same rows, and clients of them; all are ended with the scene. */
export class Scene {
  readonly servers: readonly ScriptedServer[];
  readonly changes: (string | undefined)[] = [];
  readonly reports: Error[] = [];
  readonly #clients: ClusterServers[] = [];

  private constructor(servers: readonly ScriptedServer[]) {
    this.servers = servers;
  }

  static async start(count: number): Promise<Scene> {
    return new Scene(await Promise.all(Array.from({ length: count }, () => ScriptedServer.start())));
  }

  /** Every server reports these rows from now on. */
  tell(...rows: readonly Row[]): void {
    for (const server of this.servers) server.rows = rows;
  }

  client(seeds: readonly HostPort[], options: SceneOptions = {}): ClusterServers {
    const { poolSize = 1, met = async () => {}, random, ahead = () => 0, ...timeouts } = options;
    const clock = {
      ...systemClock,
      now: () => systemClock.now() + ahead(),
      ...(random !== undefined && { random: () => random }),
    };
    const host: NodeHost = {
      ...nodeHost({ clock, ...timeouts }),
      poolSize,
      onServer: met,
      changed: (key) => this.changes.push(key),
      report: (error) => this.reports.push(error),
    };
    const client = new ClusterServers(seeds, host);
    this.#clients.push(client);
    return client;
  }

  async stop(): Promise<void> {
    for (const client of this.#clients) client.close();
    await Promise.all(this.servers.map(({ fake }) => fake.stop()));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }
}

export function send(client: ClusterServers, key: string, ...args: Argument[]): Promise<Reply> {
  return new Promise((resolve, reject) => client.send(key, args, { resolve, reject }));
}

export function read(client: ClusterServers, key: string): Promise<Reply> {
  return new Promise((resolve, reject) => client.read(key, true, { resolve, reject }));
}

export const moved = (key: string, { host, port }: HostPort): string =>
  `-MOVED ${slotOf(key)} ${host}:${port}\r\n`;
export const ask = (key: string, { host, port }: HostPort): string =>
  `-ASK ${slotOf(key)} ${host}:${port}\r\n`;
