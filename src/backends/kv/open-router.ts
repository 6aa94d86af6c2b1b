// Opens the router for a store address, with its login and TLS settings.
import { readFileSync } from "node:fs";
import type { ConnectionOptions } from "node:tls";
import type {
  ClusterAddress,
  SentinelAddress,
  SocketAddress,
  StandaloneAddress,
  TlsOptions,
} from "../../core/address/address.ts";
import type { BackendHost } from "../../core/backend.ts";
import { ConfigError, UnsupportedError } from "../../core/errors.ts";
import { ClusterServers } from "./cluster/cluster.ts";
import type { Router } from "./commands/router.ts";
import { SingleServer } from "./commands/single-server.ts";
import { SentinelServer } from "./sentinel/server.ts";
import type { ConnectionSettings, Endpoint } from "./server/connection.ts";
import type { NodeHost } from "./server/node.ts";

export type KvAddress = StandaloneAddress | SocketAddress | SentinelAddress | ClusterAddress;

export interface RouterHost extends Pick<NodeHost, "onServer" | "changed"> {
  readonly host: BackendHost;
}

export function openRouter(address: KvAddress, { host, onServer, changed }: RouterHost): Router {
  const settings = settingsOf(address, host);
  const nodeHost: NodeHost = {
    clock: host.clock,
    poolSize: host.poolSize,
    settings,
    watchesMost: host.keepsEntries === true,
    onServer,
    changed,
    down: () => {},
    untracked: reportOnce(host.report),
    report: host.report,
  };
  switch (address.kind) {
    case "standalone":
    case "socket": {
      const endpoint: Endpoint = address.kind === "socket" ? { path: address.path } : address.hosts[0];
      return new SingleServer(() => endpoint, nodeHost);
    }
    case "cluster":
      return new ClusterServers(address.hosts, nodeHost);
    case "sentinel":
      return new SentinelServer(address, nodeHost);
  }
}

/** All servers of a store have the same ACL rules, so one report is enough. */
function reportOnce(report: BackendHost["report"]): NodeHost["untracked"] {
  let isReported = false;
  return (reason) => {
    if (isReported) return;
    isReported = true;
    report(
      new UnsupportedError(`the server refuses to track changed keys: ${reason.message}`, {
        hint: "Stamps are read with every entry and the near cache stays off. Allow CLIENT TRACKING to this user.",
        cause: reason,
      }),
    );
  };
}

function settingsOf(address: KvAddress, host: BackendHost): Omit<ConnectionSettings, "endpoint"> {
  return {
    username: address.username,
    password: address.password,
    tls: address.kind === "socket" || !address.tls ? undefined : tlsOptions(address.options),
    database: address.kind === "cluster" ? 0 : address.database,
    clock: host.clock,
    connectTimeoutMs: host.connectTimeoutMs,
    operationTimeoutMs: host.operationTimeoutMs,
    readsTogether: address.kind !== "cluster",
  };
}

/** The host name is sent as SNI unless it is an IP address (RFC 6066, section 3). */
function tlsOptions(options: TlsOptions): ConnectionOptions {
  return {
    ...(options.tlsCaFile === undefined ? {} : { ca: pem(options.tlsCaFile, "tls_ca_file") }),
    ...(options.tlsCertFile === undefined ? {} : { cert: pem(options.tlsCertFile, "tls_cert_file") }),
    ...(options.tlsKeyFile === undefined ? {} : { key: pem(options.tlsKeyFile, "tls_key_file") }),
    ...(options.tlsServerName === undefined ? {} : { servername: options.tlsServerName }),
    rejectUnauthorized: options.tlsVerify ?? true,
  };
}

function pem(path: string, option: string): Buffer {
  try {
    return readFileSync(path);
  } catch (cause) {
    throw new ConfigError("CONFIG_UNREADABLE", `${option} must name a readable PEM file, got ${path}`, {
      cause,
    });
  }
}
