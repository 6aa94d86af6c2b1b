// What a server reports about itself by INFO.
import type { ReplicationHistory } from "../../../core/backend.ts";
import type { Reply } from "../resp/reply.ts";

export interface ServerInfo {
  /** Such as `redis` or `valkey`. */
  readonly kind: string;
  readonly version: string;
  /** New after every start of its process; undefined where INFO is not allowed. */
  readonly runId: string | undefined;
  /** How long its process has been running. */
  readonly uptimeSeconds: number;
  readonly isMaster: boolean;
  readonly isClusterNode: boolean;
  readonly history: ReplicationHistory | undefined;
  /** What it does when its memory is full, such as `allkeys-lru`; undefined if not reported. */
  readonly evictionPolicy: string | undefined;
  /** Its memory limit, 0 for none, and how much of it is in use. */
  readonly maxMemoryBytes: number;
  readonly usedMemoryBytes: number;
}

/** From the reply to INFO; `undefined` if the server refused it: then what it said in its `greeting` must do. */
export function readServerInfo(
  info: Reply | undefined,
  greeting: ReadonlyMap<string, string> = new Map(),
): ServerInfo {
  const fields = new Map<string, string>();
  if (Buffer.isBuffer(info)) {
    for (const line of info.toString("utf8").split("\r\n")) {
      const colon = line.indexOf(":");
      if (colon > 0) fields.set(line.slice(0, colon), line.slice(colon + 1));
    }
  }
  return {
    kind: fields.has("valkey_version") ? "valkey" : (greeting.get("server") ?? "redis"),
    version:
      fields.get("valkey_version") ?? fields.get("redis_version") ?? greeting.get("version") ?? "unknown",
    runId: fields.get("run_id"),
    uptimeSeconds: Number(fields.get("uptime_in_seconds") ?? 0),
    isMaster: (fields.get("role") ?? greeting.get("role") ?? "master") === "master",
    isClusterNode: fields.get("cluster_enabled") === "1" || greeting.get("mode") === "cluster",
    history: historyIn(fields),
    evictionPolicy: fields.get("maxmemory_policy"),
    maxMemoryBytes: Number(fields.get("maxmemory") ?? 0),
    usedMemoryBytes: Number(fields.get("used_memory") ?? 0),
  };
}

function historyIn(fields: ReadonlyMap<string, string>): ReplicationHistory | undefined {
  const id = fields.get("master_replid");
  const offset = Number(fields.get("master_repl_offset"));
  if (id === undefined || Number.isNaN(offset)) return undefined;
  const formerId = fields.get("master_replid2");
  const formerEnd = Number(fields.get("second_repl_offset") ?? -1);
  // -1: it continues no other history.
  return formerId === undefined || !(formerEnd >= 0) ? { id, offset } : { id, offset, formerId, formerEnd };
}
