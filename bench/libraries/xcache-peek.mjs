// xcache on its memory store, read synchronously.
import { openXCache } from "./xcache.mjs";

export async function open(options) {
  const driver = await openXCache(options);
  const { cache } = driver;
  return { ...driver, synchronous: true, get: (key) => cache.peek(key) };
}
