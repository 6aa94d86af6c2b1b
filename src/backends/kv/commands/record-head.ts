// Reads the beginning of a record: its header, and as much of its payload as is wanted.
import type { RecordHead } from "../../../core/backend.ts";
import { decodeHead, INCOMPLETE } from "../../../core/frame/frame.ts";
import { invalidFrame } from "../../../core/frame/frame-reader.ts";
import { type Reply, Span } from "../resp/reply.ts";
import type { Argument } from "../resp/writer.ts";

/** Covers the header of nearly every entry. */
const HEADER_BYTES = 256;
/** How much more is read of a header that is longer: names of tags may take any length. */
const GROWTH = 16;

/** Sends a command on the key's server. */
type Ask = (args: readonly Argument[]) => Promise<Reply>;

/** Undefined if there is no record of ours. `name`: the key as the server has it. Throws CodecError. */
export async function readHead(
  ask: Ask,
  key: string,
  most: number,
  name: Argument = key,
): Promise<{ readonly head: RecordHead; readonly total: number } | undefined> {
  for (let wanted = HEADER_BYTES + most; ; wanted *= GROWTH) {
    const [reply, length] = await Promise.all([
      ask(["GETRANGE", name, "0", String(wanted - 1)]),
      ask(["STRLEN", name]),
    ]);
    const bytes = reply instanceof Span ? reply.bytes.subarray(reply.start, reply.end) : reply;
    if (!Buffer.isBuffer(bytes) || bytes.length === 0) return undefined;
    // It may have been replaced between the two commands.
    const total = Math.max(bytes.length, Number(length));
    const head = decodeHead(bytes, key, total);
    if (head === undefined) return undefined;
    if (head !== INCOMPLETE) return { head, total };
    if (bytes.length < wanted) throw invalidFrame("it ends within its header");
  }
}
