// A simulated Redis server: the commands that xcache sends, CLIENT TRACKING, expiry, and what identifies a server.
//
// It executes commands one at a time, as Redis does. What crosses it are the real frames of the real client.
import { VERSION_OFFSET } from "../../src/core/frame/frame.ts";
import { bulk, EMPTIED, error, invalidation, list, NULL, number, OK, text } from "./resp.ts";

export interface Kept {
  /** With a character for each byte. */
  readonly frame: string;
  /** In the server's time; Infinity: never. */
  readonly expires: number;
}

export type Records = Map<string, Kept>;

/** A connection as the server sees it. */
export interface Client {
  readonly id: number;
  tracking: "off" | "all" | "optin" | "optout";
  /** The argument of CLIENT CACHING, which applies to the next command. */
  caching: "yes" | "no" | undefined;
  /** `lease`: the version of the lease that was in the way. */
  send(reply: string, lease?: string): void;
  /** The server closes it: nothing that arrives on it later is executed. */
  close(): void;
}

/** What the server shares with the world around it. */
export interface ServerHost {
  /** The time of the machine it runs on, in milliseconds. */
  now(): number;
  /** Called for every command; numbers them across all servers. */
  executed(): void;
  /** Called when a record was written or removed. */
  changed(server: Server, key: string): void;
}

const VERSION_LENGTH = 8;
const WRITES: ReadonlySet<string> = new Set(["SET", "GETDEL", "DEL"]);
const READONLY = error("READONLY You can't write against a read only replica.");

/** The first byte of a lease's frame. */
const LEASE = "\x92";

export const isLease = (frame: string): boolean => frame.startsWith(LEASE);

/** The key that a command tries to put a lease in the place of; undefined: it is another one. */
export function leaseIn([command = "", , , key, , next = ""]: readonly string[]): string | undefined {
  return command.startsWith("EVAL") && isLease(next) ? key : undefined;
}

export const versionOf = (frame: string): string =>
  frame.slice(VERSION_OFFSET, VERSION_OFFSET + VERSION_LENGTH);

export class Server {
  readonly name: string;
  /** New with every start of its process. */
  runId: string;
  startedAt: number;
  /** The history that its data belongs to; a promoted replica begins a new one and remembers where. */
  replicationId: string;
  formerReplicationId = "0".repeat(40);
  formerOffset = -1;
  offset = 0;
  /** It follows a master: it refuses writes, and reads what it has of the master's data. */
  isReplica = false;
  records: Records = new Map();
  readonly clients = new Map<number, Client>();
  readonly #host: ServerHost;
  readonly #tracked = new Map<string, Set<Client>>();
  /** Whose command is being executed: pushes to it follow the reply. */
  #executing: Client | undefined;
  #afterReply: string[] = [];
  /** The lease in the way of the present command. */
  #lease: string | undefined;

  constructor(name: string, host: ServerHost, identity: string) {
    this.name = name;
    this.#host = host;
    this.runId = identity;
    this.replicationId = identity;
    this.startedAt = host.now();
  }

  /** Its process ends and starts again with these records: every connection is gone. */
  restart(records: Records, identity: string): void {
    this.dropAll();
    this.records = new Map(records);
    this.runId = identity;
    this.replicationId = identity;
    this.startedAt = this.#host.now();
  }

  /** It becomes the master with what it has. */
  promote(identity: string): void {
    this.formerReplicationId = this.replicationId;
    this.formerOffset = this.offset;
    this.replicationId = identity;
    this.isReplica = false;
  }

  /** As `resync`, but it keeps its connections: who is on them hears only that all data was replaced. */
  demote(master: Server): void {
    this.#takeOver(master);
    this.#tracked.clear();
    for (const client of this.clients.values()) if (client.tracking !== "off") client.send(EMPTIED);
  }

  /** It applies a write of its master. */
  follow(key: string, kept: Kept | undefined): void {
    this.offset++;
    if (kept === undefined) this.records.delete(key);
    else this.records.set(key, kept);
    this.#push(key);
  }

  /** It becomes a replica of `master` and takes over its records; it is the same process as before. */
  resync(master: Server): void {
    this.dropAll();
    this.#takeOver(master);
  }

  #takeOver(master: Server): void {
    this.isReplica = true;
    this.records = new Map(master.records);
    this.replicationId = master.replicationId;
    this.offset = master.offset;
  }

  dropAll(): void {
    for (const client of [...this.clients.values()]) client.close();
    this.clients.clear();
    this.#tracked.clear();
  }

  /** A server in the same state, whose clients are made by `clientLike`. */
  copy(host: ServerHost, clientLike: (client: Client) => Client): Server {
    const copy = new Server(this.name, host, this.runId);
    copy.startedAt = this.startedAt;
    copy.records = new Map(this.records);
    for (const client of this.clients.values()) copy.accept(clientLike(client));
    for (const [key, clients] of this.#tracked)
      copy.#tracked.set(key, new Set([...clients].map(({ id }) => copy.clients.get(id) as Client)));
    return copy;
  }

  /** Everything that decides how it answers, except which run it is and how many writes it has applied. */
  get content(): string {
    const records = [...this.records].map(([key, { frame, expires }]) => `${key} ${expires} ${frame}`);
    const tracked = [...this.#tracked].map(
      ([key, clients]) => `${key} ${[...clients].map(({ id }) => id).sort()}`,
    );
    const clients = [...this.clients.values()].map(
      ({ id, tracking, caching }) => `${id} ${tracking} ${caching}`,
    );
    return [records.sort(), tracked.sort(), clients].map((lines) => lines.join("\u0100")).join("\u0101");
  }

  accept(client: Client): void {
    this.clients.set(client.id, client);
  }

  drop(client: Client): void {
    this.clients.delete(client.id);
    for (const clients of this.#tracked.values()) clients.delete(client);
  }

  evict(key: string): void {
    if (this.records.delete(key)) this.#changed(key);
  }

  execute(client: Client, args: readonly string[]): void {
    this.#host.executed();
    const command = args[0] as string;
    this.#executing = client;
    const reply = this.#reply(client, command, args);
    if (command !== "CLIENT") client.caching = undefined;
    this.#executing = undefined;
    client.send(reply, this.#lease);
    this.#lease = undefined;
    const pushes = this.#afterReply;
    if (pushes.length === 0) return;
    this.#afterReply = [];
    for (const key of pushes) client.send(invalidation(key));
  }

  #reply(client: Client, command: string, args: readonly string[]): string {
    const key = args[1] ?? "";
    if (this.isReplica && WRITES.has(command)) return READONLY;
    switch (command) {
      case "GET":
        this.#track(client, key);
        return bulk(this.#frame(key));
      case "MGET":
        return list(
          args.slice(1).map((name) => {
            this.#track(client, name);
            return bulk(this.#frame(name));
          }),
        );
      case "SET":
        this.#write(key, args[2] as string, args[4] ?? "");
        return OK;
      case "GETDEL": {
        const frame = this.#frame(key);
        this.#remove(key);
        return bulk(frame);
      }
      case "DEL":
        return number(args.slice(1).filter((name) => this.#remove(name)).length);
      case "TOUCH":
        return number(args.slice(1).filter((name) => this.#frame(name) !== undefined).length);
      case "EVALSHA":
      case "EVAL":
        return this.#swap(args);
      case "GETRANGE":
        return text((this.#frame(key) ?? "").slice(Number(args[2]), Number(args[3]) + 1));
      case "STRLEN":
        return number(this.#frame(key)?.length ?? 0);
      case "SCAN":
        return this.#scan(args[3] as string);
      case "PING":
        return "+PONG\r\n";
      case "TIME":
        return this.#time();
      case "INFO":
        return text(this.#info());
      case "HELLO":
        return this.#hello(client);
      case "CLIENT":
        return this.#client(client, args.slice(1));
      case "SELECT":
        return OK;
      default:
        return error(`ERR unknown command '${command}'`);
    }
  }

  /** The compare-and-swap of src/backends/kv/commands/commands.ts. */
  #swap(args: readonly string[]): string {
    // A client finds out whether scripts are allowed.
    if (args[2] === "0") return number(1);
    const [, , , key, expected, next, lifetime] = args as [
      string,
      string,
      string,
      string,
      string,
      string,
      string,
    ];
    const present = this.#frame(key);
    if ((present === undefined ? "" : versionOf(present)) !== expected) {
      if (present !== undefined && isLease(present)) this.#lease = versionOf(present);
      return bulk(present);
    }
    if (this.isReplica) return READONLY;
    if (next === "") this.#remove(key);
    else this.#write(key, next, lifetime);
    return number(1);
  }

  #frame(key: string): string | undefined {
    const kept = this.records.get(key);
    if (kept === undefined) return undefined;
    if (kept.expires > this.#host.now()) return kept.frame;
    // Only a master removes it.
    if (!this.isReplica) this.#remove(key);
    return undefined;
  }

  #write(key: string, frame: string, lifetime: string): void {
    const expires = lifetime === "" ? Number.POSITIVE_INFINITY : this.#host.now() + Number(lifetime);
    this.records.set(key, { frame, expires });
    this.#changed(key);
  }

  #remove(key: string): boolean {
    const isThere = this.records.delete(key);
    if (isThere) this.#changed(key);
    return isThere;
  }

  #changed(key: string): void {
    this.offset++;
    this.#host.changed(this, key);
    this.#push(key);
  }

  #push(key: string): void {
    const tracking = this.#tracked.get(key);
    if (tracking === undefined) return;
    this.#tracked.delete(key);
    for (const client of tracking) {
      if (client === this.#executing) this.#afterReply.push(key);
      else client.send(invalidation(key));
    }
  }

  #track(client: Client, key: string): void {
    const { tracking, caching } = client;
    const isTracked =
      tracking === "all" ||
      (tracking === "optin" && caching === "yes") ||
      (tracking === "optout" && caching !== "no");
    if (!isTracked) return;
    const clients = this.#tracked.get(key);
    if (clients === undefined) this.#tracked.set(key, new Set([client]));
    else clients.add(client);
  }

  /** All at once; a real server's cursor gives no stronger promise than that every lasting key is returned. */
  #scan(pattern: string): string {
    const prefix = pattern.slice(0, -1).replaceAll("\\", "");
    const keys = [...this.records.keys()].filter((key) => key.startsWith(prefix) && this.#frame(key));
    return list([text("0"), list(keys.map(text))]);
  }

  #time(): string {
    const now = this.#host.now();
    return list([text(String(Math.floor(now / 1_000))), text(String(Math.floor((now % 1_000) * 1_000)))]);
  }

  #info(): string {
    const uptime = Math.floor((this.#host.now() - this.startedAt) / 1_000);
    return [
      "redis_version:7.2.4",
      `run_id:${this.runId}`,
      `uptime_in_seconds:${uptime}`,
      `role:${this.isReplica ? "slave" : "master"}`,
      `master_replid:${this.replicationId}`,
      `master_replid2:${this.formerReplicationId}`,
      `master_repl_offset:${this.offset}`,
      `second_repl_offset:${this.formerOffset}`,
    ].join("\r\n");
  }

  #hello(client: Client): string {
    return `%3\r\n${text("server")}${text("redis")}${text("proto")}${number(3)}${text("id")}${number(client.id)}`;
  }

  #client(client: Client, [sub = "", ...rest]: readonly string[]): string {
    switch (sub.toUpperCase()) {
      case "TRACKING":
        client.tracking =
          rest[0] === "OFF" ? "off" : rest[1] === "OPTIN" ? "optin" : rest[1] === "OPTOUT" ? "optout" : "all";
        return OK;
      case "CACHING":
        client.caching = rest[0] === "YES" ? "yes" : "no";
        return OK;
      case "ID":
        return number(client.id);
      case "KILL":
        return this.#kill(Number(rest[1]));
      default:
        return rest.length === 0 ? NULL : OK;
    }
  }

  #kill(id: number): string {
    const victim = this.clients.get(id);
    if (victim === undefined) return number(0);
    this.drop(victim);
    victim.close();
    return number(1);
  }
}
