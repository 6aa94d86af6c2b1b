// Reads several entries at once, whatever state each of them is in.
import { CodecError } from "../core/errors.ts";
import type { XCache } from "../xcache.ts";

/** The present ones. An entry that cannot be decoded is left out: it must not keep the others from being found. */
export async function readEntries(
  space: XCache,
  keys: readonly string[],
): Promise<ReadonlyMap<string, unknown>> {
  try {
    return await space.getMany(keys);
  } catch (error) {
    if (!(error instanceof CodecError)) throw error;
  }
  const found = new Map<string, unknown>();
  for (const key of keys) {
    try {
      found.set(key, await space.get(key));
    } catch (error) {
      if (!(error instanceof CodecError)) throw error;
    }
  }
  return found;
}
