// The mark of the latest commit. Every commit replaces it, so a commit can require that no other process has committed
// since its snapshot.
//
// It also keeps every transaction from being empty. The LMDB inside the binding numbers an empty transaction like the one
// that follows it; if that is another process's, this process takes its list of free pages for current and gives pages
// in use away.
import { TOKEN_LENGTH, tokenAt } from "../../core/frame/frame-fields.ts";
import type { Token } from "../../core/record.ts";
import type { Change, Condition } from "./change.ts";
import { AREA, type DiskKey, inArea } from "./layout/disk-key.ts";
import { comparable } from "./layout/stored-record.ts";

const KEY = inArea(AREA.about, Buffer.from("commit"));

/** Holds until the next commit of any process; undefined if there has been none. */
export function noCommitSince(get: (key: DiskKey) => Buffer | undefined): Condition | undefined {
  const mark = get(KEY);
  return mark?.length === TOKEN_LENGTH ? { key: KEY, version: comparable(tokenAt(mark, 0)) } : undefined;
}

/** Part of every commit. */
export function commitMark(token: Token): Change {
  const value = Buffer.from(token, "latin1");
  return { puts: [{ key: KEY, value, version: comparable(token) }], removals: [] };
}
