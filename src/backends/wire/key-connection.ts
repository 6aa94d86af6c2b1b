// Over which connection to a server what concerns a key travels.

/** Stamps share the first one, so that they change in the same order for everybody. */
export const connectionOf = (key: string, connections: number): number =>
  connections === 1 || isOwnRecord(key) ? 0 : spread(key) % connections;

/** Whether a key is one of the library's own; see `spelling` in core/keys.ts. */
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
