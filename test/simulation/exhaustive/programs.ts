// The small programs whose interleavings are explored: two processes, one key, one tag.
import { type Operation, tagsOf } from "../operations.ts";
import type { WorldSettings } from "../world.ts";

export type Name = "get" | "getOrSet" | "set" | "delete" | "invalidateTags" | "clear";

/** The operations of each process, one after another. */
export type Program = readonly [readonly Name[], readonly Name[]];

const NAMES: readonly Name[] = ["get", "getOrSet", "set", "delete", "invalidateTags"];
const READS: readonly Name[] = ["get", "getOrSet"];

export const KEY = "a";

export const OPERATIONS: Readonly<Record<Name, Operation>> = {
  get: { do: "get", key: KEY, namespace: "" },
  getOrSet: { do: "getOrSet", key: KEY, namespace: "", tags: tagsOf(KEY), lateTags: [], outcome: "value" },
  set: { do: "set", key: KEY, namespace: "", tags: tagsOf(KEY) },
  delete: { do: "delete", key: KEY, namespace: "" },
  invalidateTags: { do: "invalidateTags", tags: ["all"], namespace: "" },
  clear: { do: "clear", namespace: "" },
};

export const SETTINGS: WorldSettings = {
  seed: 1,
  processes: 2,
  near: true,
  poolSize: 1,
  hasReplica: false,
  keys: [KEY],
  namespaces: [""],
  lateTags: false,
  stale: false,
  timeouts: false,
  hangs: false,
  disconnects: false,
  changes: 0,
};

/** All programs of this many operations that change something, each pair of processes once. Both read the entry in the end. */
export function programs(operations: number): Program[] {
  const sequences = (length: number): Name[][] =>
    length === 0 ? [[]] : sequences(length - 1).flatMap((head) => NAMES.map((name) => [...head, name]));
  const all: Program[] = [];
  for (let first = Math.ceil(operations / 2); first < operations; first++) {
    for (const one of sequences(first)) {
      for (const other of sequences(operations - first)) {
        if (first === operations - first && one.join() < other.join()) continue;
        if (![...one, ...other].every((name) => READS.includes(name))) all.push([one, other]);
      }
    }
  }
  return all;
}
