// Starts a real Redis server for a test.
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Certificates } from "./certificate.ts";
import { exchange, type Peer } from "./exchange.ts";
import { movableClock, setClock } from "./fake-time.ts";
import { binaryOf } from "./machine.ts";
import { redisCli } from "./redis-cli.ts";
import { type Launch, type Place, type ServerProcess, startOnFreePort } from "./server-process.ts";

export interface RedisOptions {
  /** Such as `64mb`. Default: no limit. */
  readonly maxmemory?: string;
  /** Such as `allkeys-lru`. Default: the server's, `noeviction`. */
  readonly maxmemoryPolicy?: string;
  readonly requirepass?: string;
  /** Lines of an ACL file, such as `user app on >secret ~app:* +@all`. */
  readonly acl?: readonly string[];
  /** Listen with TLS instead of plain TCP. */
  readonly tls?: Certificates;
  /** Keep writes over a restart. Default: false. */
  readonly appendonly?: boolean;
  /** Listen on a unix socket as well. */
  readonly unixsocket?: boolean;
  /** More arguments, such as `["--cluster-enabled", "yes"]`. */
  readonly args?: readonly string[];
  /** Let `setClock` change the server's clock. */
  readonly movableClock?: boolean;
  /** Take it for ready while it still reads its data, and refuses most commands. */
  readonly isReadyWhileLoading?: boolean;
  /** Also reserve the cluster bus port. */
  readonly withBus?: boolean;
}

export interface RedisServer extends ServerProcess {
  /** With the password, if there is one. */
  readonly url: string;
  /** Present when started with `unixsocket`. */
  readonly unixUrl: string | undefined;
  /** As `redis-cli` against this server; rejects with the server's words when a command fails. */
  cli(...args: readonly string[]): Promise<string>;
  /** Sets the server's clock ahead of the real time, or behind it if negative; needs `movableClock`. */
  setClock(aheadSeconds: number): void;
}

/** Starts a server with no persistence but what the options say, and waits until it answers. */
export async function startRedis(options: RedisOptions = {}): Promise<RedisServer> {
  const server = await startOnFreePort("redis", (place) => planRedis(place, options), {
    withBus: options.withBus ?? false,
  });
  const { requirepass, tls } = options;
  const credentials = requirepass === undefined ? "" : `:${encodeURIComponent(requirepass)}@`;
  const host = tls === undefined ? "redis://" : "rediss://";
  return Object.assign(server, {
    url: `${host}${credentials}${tls === undefined ? "127.0.0.1" : "localhost"}:${server.port}/0`,
    unixUrl: options.unixsocket ? `unix://${credentials}${socketPath(server)}` : undefined,
    cli: (...args: readonly string[]) => redisCli(server.port, options, args),
    setClock: (aheadSeconds: number) => setClock(server.folder, aheadSeconds),
  });
}

const socketPath = (place: Place): string => join(place.folder, "redis.sock");

function planRedis(place: Place, options: RedisOptions): Launch {
  const { maxmemory, maxmemoryPolicy, requirepass, acl, tls, appendonly, unixsocket, args = [] } = options;
  const settings: string[] = ["--bind", "127.0.0.1", "--dir", place.folder, "--save", ""];
  const add = (name: string, value: string) => settings.push(`--${name}`, value);
  add("daemonize", "no");
  // Without it a server with a lagging replica delays its own shutdown by seconds.
  if (!isRedis6()) add("shutdown-timeout", "0");
  add("appendonly", appendonly ? "yes" : "no");
  add(tls === undefined ? "port" : "tls-port", String(place.port));
  if (tls !== undefined) {
    add("port", "0");
    add("tls-cert-file", tls.certFile);
    add("tls-key-file", tls.keyFile);
    add("tls-ca-cert-file", tls.caFile);
    add("tls-auth-clients", "no");
  }
  if (maxmemory !== undefined) add("maxmemory", maxmemory);
  if (maxmemoryPolicy !== undefined) add("maxmemory-policy", maxmemoryPolicy);
  if (requirepass !== undefined) add("requirepass", requirepass);
  if (unixsocket) add("unixsocket", socketPath(place));
  if (acl !== undefined) {
    const aclFile = join(place.folder, "users.acl");
    writeFileSync(aclFile, `${acl.join("\n")}\n`);
    add("aclfile", aclFile);
  }
  return {
    binary: binaryOf("redis-server"),
    args: [...settings, ...args],
    ...(options.movableClock && { env: movableClock(place.folder) }),
    isReady: (pid) =>
      isRedisReady(
        { port: place.port, ...(tls && { ca: tls.ca }) },
        pid,
        requirepass,
        options.isReadyWhileLoading,
      ),
  };
}

let version: string | undefined;

/** It does not know every setting and every form of an ACL rule. */
export function isRedis6(): boolean {
  version ??= spawnSync(binaryOf("redis-server"), ["--version"], { encoding: "utf8" }).stdout;
  return version.startsWith("Redis server v=6.");
}

/** A server that refuses to talk without a login is up as well; one that still reads its data, which refuses PING, is not. */
export async function isRedisReady(
  peer: Peer,
  pid: number,
  password?: string,
  whileLoading = false,
): Promise<boolean> {
  const login = password === undefined ? "" : `${encodeCommand("AUTH", password)}`;
  const question = `${login}${encodeCommand("INFO", "server")}${encodeCommand("PING")}`;
  const reply = await exchange(peer, question, (text) =>
    /-NOAUTH|-LOADING|-ERR unknown command|-NOPERM|\+PONG/.test(text),
  );
  if (reply.includes("-LOADING") && !whileLoading) return false;
  // Tests may have renamed INFO.
  return /-NOAUTH|-ERR unknown command/.test(reply) || reply.includes(`process_id:${pid}\r\n`);
}

function encodeCommand(...parts: readonly string[]): string {
  return `*${parts.length}\r\n${parts.map((part) => `$${Buffer.byteLength(part)}\r\n${part}\r\n`).join("")}`;
}
