// What the namespaces of a memory store share, and how values enter and leave it.
import type { Clock } from "../../core/clock.ts";
import type { Copier } from "../../core/codec.ts";
import { frozen, type Handing, isMadeFrozen } from "../../core/frozen.ts";
import type { Table } from "./table.ts";
import type { TagSet } from "./tag-set.ts";

export interface MemoryCore {
  readonly table: Table<TagSet>;
  readonly clock: Clock;
  readonly codec: Copier;
  /** What callers get of the stored objects. */
  readonly values: Handing;
  /** Whether values are measured because the store is bounded by bytes. */
  readonly measuresBytes: boolean;
}

/** What the store keeps of a caller's value, and a caller gets of a stored one. */
export function handed({ values, codec }: MemoryCore, value: unknown): unknown {
  if (values === "shared") return value;
  if (values === "copy") return codec.copy(value);
  return isMadeFrozen(value) ? value : frozen(codec.copy(value));
}

/** About what an entry takes in memory. */
export function bytesOf(codec: Copier, key: string, value: unknown): number {
  return codec.sizeOf(value) + key.length * 2;
}
