// Keys and bytes of what a scan lists, counted one by one.
import type { Inspection, NamespaceUsage } from "./namespace.ts";

export async function countedUsage(batches: AsyncIterable<readonly Inspection[]>): Promise<NamespaceUsage> {
  let keys = 0;
  let bytes = 0;
  for await (const batch of batches) {
    keys += batch.length;
    for (const item of batch) bytes += item.bytes;
  }
  return { keys, bytes, approximate: false };
}
