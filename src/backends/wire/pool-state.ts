// The state of the connections to a store, added up over all its servers.
import type { PoolState } from "../../core/backend.ts";

interface PooledConnection {
  /** How many calls wait for the connection to be made. */
  readonly waiting: number;
  readonly connection?: { readonly inFlight: number; readonly isClogged: boolean } | undefined;
}

export function poolState(links: readonly PooledConnection[]): PoolState {
  const inUse = links.filter(({ connection }) => (connection?.inFlight ?? 0) > 0).length;
  const waiting = links.reduce((sum, link) => sum + link.waiting, 0);
  const full = links.filter((link) => link.waiting > 0 || link.connection?.isClogged === true).length;
  return { size: links.length, inUse, idle: links.length - inUse, waiting, full };
}
