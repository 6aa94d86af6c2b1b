// From an address to the servers behind it.
import { readFileSync } from "node:fs";
import type { ConnectionOptions } from "node:tls";
import type { TlsOptions } from "../../core/address/address.ts";
import type { BackendHost } from "../../core/backend.ts";
import { ConfigError, UnsupportedError } from "../../core/errors.ts";
import { ClusterServers } from "./cluster/cluster.ts";
import type { Router } from "./commands/router.ts";
import { SingleServer } from "./commands/single-server.ts";
import type { KvAddress } from "./kv-address.ts";
import { SentinelServer } from "./sentinel/server.ts";
import type { ConnectionSettings, Endpoint } from "./server/connection.ts";
import type { NodeHost } from "./server/node.ts";

export interface RouterHost extends Pick<NodeHost, "met" | "changed"> {
  readonly host: BackendHost;
}

export function openRouter(address: KvAddress, { host, met, changed }: RouterHost): Router {
  const settings = settingsOf(address, host);
  const nodeHost: NodeHost = {
    clock: host.clock,
    poolSize: host.poolSize,
    settings,
    watchesMost: host.keepsEntries === true,
    met,
    changed,
    down: () => {},
    untold: tellOnce(host.report),
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

/** The servers of a store have the same rules for a user: to be told of one is enough. */
function tellOnce(report: BackendHost["report"]): NodeHost["untold"] {
  let isTold = false;
  return (reason) => {
    if (isTold) return;
    isTold = true;
    report(
      new UnsupportedError(`the server does not tell of changed keys: ${reason.message}`, {
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

/** The server's name is sent unless it is an address, which TLS does not allow. */
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
