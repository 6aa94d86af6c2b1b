// Notes about a server, which lie on that server whatever the ring says, and are the same for every list of servers.
const MARK = "!x:server@";

/** What `MetServer.anchor` is for the server of this name. */
export const anchorFor = (name: string): string => `@${name}`;

/** The name of the server that a key is a note about; undefined for any other key. */
export function anchoredTo(key: string): string | undefined {
  const mark = key.indexOf(MARK);
  // A colon before it means that it is part of a user's key; see `spelling` in core/keys.ts.
  if (mark < 0 || key.indexOf(":") < mark) return undefined;
  return key.slice(mark + MARK.length);
}
