// Which connection to a server carries the commands for a key.

/** Stamps share the first one, so that every process sees them change in the same order. */
export const connectionOf = (key: string, connections: number): number =>
  connections === 1 || isOwnRecord(key) ? 0 : spread(key) % connections;

/** Whether a key is one of the library's own records; see `spelling` in core/keys.ts. */
function isOwnRecord(key: string): boolean {
  const mark = key.indexOf("!");
  return mark >= 0 && !key.slice(0, mark).includes(":");
}

/** Any even distribution will do. */
function spread(key: string): number {
  let hash = key.length;
  for (let at = Math.max(0, key.length - 8); at < key.length; at++)
    hash = (hash * 31 + key.charCodeAt(at)) >>> 0;
  return hash;
}
