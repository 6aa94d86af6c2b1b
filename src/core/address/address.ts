// The parsed form of every kind of store address.
import type { Handing } from "../frozen.ts";

export interface HostPort {
  /** Without brackets. */
  readonly host: string;
  readonly port: number;
}

/** The name of a server, the same however its host is written. memcached's ring is made of these: they must not change. */
export function nameOf({ host, port }: HostPort): string {
  const name = host.toLowerCase();
  return `${name.includes(":") ? `[${name}]` : name}:${port}`;
}

export interface TlsOptions {
  /** PEM file of the authorities to trust. Default: the system's. */
  readonly tlsCaFile?: string;
  /** PEM files of the client's certificate and its key. */
  readonly tlsCertFile?: string;
  readonly tlsKeyFile?: string;
  /** Name the certificate must carry. Default: the host. */
  readonly tlsServerName?: string;
  /** false accepts any certificate. Default: true. */
  readonly tlsVerify?: boolean;
}

/** Options of every connection to Redis or Valkey. Durations in seconds. */
export interface LinkOptions {
  /** The name in the server's CLIENT LIST. Default: xcache. */
  readonly clientName?: string;
  /** Idle time before the system probes a connection; 0: it does not. Default: 5. */
  readonly keepAlive?: number;
  /** The first pause before reconnecting; it doubles with every failure up to the longest. Default: 0.02 and 0.5. */
  readonly reconnectPause?: number;
  readonly maxReconnectPause?: number;
}

/** Servers that announce addresses which cannot be reached from here. */
export interface NatOptions {
  /** From an announced `host:port` to the one to connect to. */
  readonly natMap?: ReadonlyMap<string, HostPort>;
}

export type ServerOptions = TlsOptions & LinkOptions;
export type ClusterOptions = ServerOptions & NatOptions;

export interface SentinelOptions extends TlsOptions, LinkOptions, NatOptions {
  /** Credentials of the sentinels themselves. Default: none. */
  readonly sentinelUsername?: string;
  readonly sentinelPassword?: string;
  /** Whether the sentinels speak TLS. Default: as the servers. */
  readonly sentinelTls?: boolean;
  /** As the `tls` options, for the sentinels. Default: those of the servers. */
  readonly sentinelTlsCaFile?: string;
  readonly sentinelTlsCertFile?: string;
  readonly sentinelTlsKeyFile?: string;
  readonly sentinelTlsServerName?: string;
  readonly sentinelTlsVerify?: boolean;
}

export interface MemoryOptions {
  readonly maxEntries?: number;
  readonly maxBytes?: number;
  readonly values?: Handing;
}

export interface FileOptions {
  readonly maxBytes?: number;
  readonly durability?: "process" | "disk";
}

/** Credentials, percent-decoded. */
export interface Login {
  readonly username: string | undefined;
  readonly password: string | undefined;
}

interface Networked extends Login {
  readonly hosts: readonly [HostPort, ...HostPort[]];
  readonly tls: boolean;
}

export interface StandaloneAddress extends Networked {
  readonly kind: "standalone";
  readonly database: number;
  readonly options: ServerOptions;
}

export interface ClusterAddress extends Networked {
  readonly kind: "cluster";
  readonly options: ClusterOptions;
}

export interface SentinelAddress extends Networked {
  readonly kind: "sentinel";
  /** The master's name in the sentinels' configuration. */
  readonly name: string;
  readonly database: number;
  readonly options: SentinelOptions;
}

export interface SocketAddress extends Login {
  readonly kind: "socket";
  readonly path: string;
  readonly database: number;
  readonly options: LinkOptions;
}

export interface MemcachedAddress {
  readonly kind: "memcached";
  readonly hosts: readonly [HostPort, ...HostPort[]];
}

export interface MemoryAddress {
  readonly kind: "memory";
  readonly options: MemoryOptions;
}

export interface FileAddress {
  readonly kind: "file";
  /** An absolute directory in the platform's notation. */
  readonly path: string;
  readonly options: FileOptions;
}

export type StoreAddress =
  | StandaloneAddress
  | ClusterAddress
  | SentinelAddress
  | SocketAddress
  | MemcachedAddress
  | MemoryAddress
  | FileAddress;

/** What a password function returns, if not the password alone. */
export interface Credentials {
  /** Default: the configured user name, or the server's default user. */
  readonly username?: string | undefined;
  readonly password: string;
  /**
   * When the password expires, as a Date or in milliseconds since the epoch. Shortly before, the function is called again and
   * open connections log in with its new result. Default: never.
   */
  readonly expiresAt?: Date | number | undefined;
}

/** Called for every connection. If it throws or takes longer than connectTimeout, the connection has failed. */
export type PasswordFunction = () => string | Credentials | PromiseLike<string | Credentials>;
