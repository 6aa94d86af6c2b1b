// xcache on its memory store, called with keys that were built beforehand.
import { openXCache } from "./xcache.mjs";

export async function open(options) {
  return { ...(await openXCache(options)), hasReadyKeys: true };
}
