// lru-cache, read synchronously.
import { open as openLruCache } from "./lru-cache.mjs";

export const open = async (options) => ({ ...(await openLruCache(options)), synchronous: true });
