// Routers of sentinels and clusters: loaded only for an address that names them.
import type { ClusterAddress, SentinelAddress } from "../../core/address/address.ts";
import { ClusterServers } from "./cluster/cluster.ts";
import type { Router } from "./commands/router.ts";
import { SentinelServer } from "./sentinel/server.ts";
import type { NodeHost } from "./server/node.ts";

export function openServers(address: SentinelAddress | ClusterAddress, host: NodeHost): Router {
  return address.kind === "cluster"
    ? new ClusterServers(address.hosts, host)
    : new SentinelServer(address, host);
}
