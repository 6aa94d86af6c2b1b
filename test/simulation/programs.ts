// The small programs whose interleavings are explored: two processes, one key, one tag.

export type Name = "get" | "getOrSet" | "set" | "delete" | "invalidateTags" | "clear";

/** The operations of each process, one after another. */
export type Program = readonly [readonly Name[], readonly Name[]];

const NAMES: readonly Name[] = ["get", "getOrSet", "set", "delete", "invalidateTags"];
const READS: readonly Name[] = ["get", "getOrSet"];

/** All programs of so many operations that both read and change something, each pair of processes once. */
export function programs(operations: number): Program[] {
  const sequences = (length: number): Name[][] =>
    length === 0 ? [[]] : sequences(length - 1).flatMap((head) => NAMES.map((name) => [...head, name]));
  const all: Program[] = [];
  for (let first = Math.ceil(operations / 2); first < operations; first++) {
    for (const one of sequences(first)) {
      for (const other of sequences(operations - first)) {
        if (first === operations - first && one.join() < other.join()) continue;
        const names = [...one, ...other];
        const isMixed =
          names.some((name) => READS.includes(name)) && !names.every((name) => READS.includes(name));
        if (isMixed) all.push([one, other]);
      }
    }
  }
  return all;
}
