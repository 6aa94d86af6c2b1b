// Which addresses are of Redis or Valkey.
import type {
  ClusterAddress,
  SentinelAddress,
  SocketAddress,
  StandaloneAddress,
  StoreAddress,
} from "../../core/address/address.ts";

export type KvAddress = StandaloneAddress | SocketAddress | SentinelAddress | ClusterAddress;

export function isKvAddress(address: StoreAddress): address is KvAddress {
  return ["standalone", "socket", "sentinel", "cluster"].includes(address.kind);
}
