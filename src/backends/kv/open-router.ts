// Opens the router for a store address, with its login and TLS settings.
import type {
  ClusterAddress,
  LinkOptions,
  NatOptions,
  SentinelAddress,
  SocketAddress,
  StandaloneAddress,
} from "../../core/address/address.ts";
import type { BackendHost } from "../../core/backend.ts";
import { DEFAULT_PAUSES } from "../wire/reconnecting.ts";
import type { Router } from "./commands/router.ts";
import { SingleServer } from "./commands/single-server.ts";
import type { ConnectionSettings, Endpoint } from "./server/connection.ts";
import { type LoginOptions, loginOf } from "./server/login.ts";
import type { NodeHost } from "./server/node.ts";
import { readTls } from "./server/tls.ts";

export type SeveralServers = typeof import("./several-servers.ts");

export type KvAddress = StandaloneAddress | SocketAddress | SentinelAddress | ClusterAddress;

export interface RouterHost extends Pick<NodeHost, "onServer" | "changed" | "restrictions"> {
  readonly host: BackendHost;
  /** Needed for an address of sentinels or of a cluster. */
  readonly several: SeveralServers | undefined;
}

export function openRouter(
  address: KvAddress,
  login: LoginOptions,
  { host, several, onServer, changed, restrictions }: RouterHost,
): Router {
  const settings = settingsOf(address, login, host);
  const nodeHost: NodeHost = {
    clock: host.clock,
    poolSize: host.poolSize,
    settings,
    watchesMost: host.keepsEntries === true,
    onServer,
    changed,
    up: () => host.connected?.(),
    down: () => {},
    restrictions,
    report: host.report,
  };
  switch (address.kind) {
    case "standalone":
    case "socket": {
      const endpoint: Endpoint = address.kind === "socket" ? { path: address.path } : address.hosts[0];
      return new SingleServer(() => endpoint, { ...nodeHost, isAlone: true });
    }
    case "cluster":
    case "sentinel":
      return (several as SeveralServers).openServers(address, nodeHost);
  }
}

function settingsOf(
  address: KvAddress,
  login: LoginOptions,
  host: BackendHost,
): Omit<ConnectionSettings, "endpoint"> {
  return {
    login: loginOf(login),
    loginFailed: host.report,
    tls: address.kind === "socket" || !address.tls ? undefined : () => readTls(address.options),
    database: address.kind === "cluster" ? 0 : address.database,
    clock: host.clock,
    connectTimeoutMs: host.connectTimeoutMs,
    operationTimeoutMs: host.operationTimeoutMs,
    readsTogether: address.kind !== "cluster",
    ...linkSettings(address.options),
    translate: "natMap" in address.options ? translation(address.options) : undefined,
  };
}

function linkSettings({
  clientName,
  keepAlive,
  reconnectPause,
  maxReconnectPause,
}: LinkOptions): Pick<ConnectionSettings, "clientName" | "keepAliveMs" | "pauses"> {
  return {
    clientName,
    keepAliveMs: keepAlive === undefined ? undefined : keepAlive * 1_000,
    pauses: {
      firstMs: (reconnectPause ?? DEFAULT_PAUSES.firstMs / 1_000) * 1_000,
      longestMs: (maxReconnectPause ?? DEFAULT_PAUSES.longestMs / 1_000) * 1_000,
    },
  };
}

/** An address that is not in the map is used as announced. */
function translation({ natMap }: NatOptions): ConnectionSettings["translate"] {
  return (announced) => natMap?.get(`${announced.host.toLowerCase()}:${announced.port}`) ?? announced;
}
