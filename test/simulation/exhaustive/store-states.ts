// The states that the store can be in, each kept once, and what a command makes of them.
import type { Client, Server, ServerHost } from "../server.ts";
import { liveValueIn } from "../store.ts";
import type { World } from "../world.ts";
import { Numbering } from "./numbering.ts";
import { KEY } from "./programs.ts";

/** What a command has done. */
export interface Served {
  /** The number of the state it left. */
  readonly store: number;
  /** The numbers of the frames that were sent to each process. */
  readonly sent: readonly [readonly number[], readonly number[]];
}

export class StoreStates {
  readonly first: number;
  readonly #servers = new Numbering<Server>();
  readonly #commands: Numbering<readonly string[]>;
  readonly #frames: Numbering<string>;
  readonly #served = new Map<string, Served>();
  /** The connection of each process, by its id. */
  readonly #processOf = new Map<number, number>();
  #now = 0;
  #sent: [number[], number[]] = [[], []];

  readonly #host: ServerHost = { now: () => this.#now, executed: () => {}, changed: () => {} };

  constructor(world: World, commands: Numbering<readonly string[]>, frames: Numbering<string>) {
    this.#commands = commands;
    this.#frames = frames;
    for (const { id, process } of world.network.links) this.#processOf.set(id, process);
    this.first = this.#number(this.#copy(world.network.master));
  }

  /** The store executes a command of a process. */
  serve(store: number, process: number, command: number, time: number): Served {
    const key = `${store} ${process} ${command} ${time}`;
    const known = this.#served.get(key);
    if (known !== undefined) return known;
    const server = this.#copy(this.#servers.at(store));
    this.#now = time;
    this.#sent = [[], []];
    const client = [...server.clients.values()].find(
      ({ id }) => this.#processOf.get(id) === process,
    ) as Client;
    server.execute(client, this.#commands.at(command));
    const served = { store: this.#number(server), sent: this.#sent };
    this.#served.set(key, served);
    return served;
  }

  liveValue(store: number, time: number): string | undefined {
    return liveValueIn(this.#servers.at(store).records, time, "", KEY);
  }

  #number(server: Server): number {
    return this.#servers.of(server.content, () => server);
  }

  #copy(server: Server): Server {
    return server.copy(this.#host, ({ id, tracking, caching }) => ({
      id,
      tracking,
      caching,
      send: (frame) => {
        const process = this.#processOf.get(id) as 0 | 1;
        this.#sent[process].push(this.#frames.of(frame, () => frame));
      },
      close: () => {
        throw new Error("an exploration closes no connection");
      },
    }));
  }
}
