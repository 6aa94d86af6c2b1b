// The one script of the store: compare-and-swap on the version of a record. It touches one key only.
import { createHash } from "node:crypto";
import { VERSION_OFFSET } from "../../../core/frame/frame.ts";

const VERSION_LENGTH = 8;

/**
 * KEYS[1]; ARGV: the expected version or nothing for "no record", the next frame or nothing to remove it, and its lifetime in
 * milliseconds or nothing for ever. Answers 1 when the record was replaced, else what stands there, or nothing.
 */
export const SWAP = `
local present = redis.call('GETRANGE', KEYS[1], ${VERSION_OFFSET}, ${VERSION_OFFSET + VERSION_LENGTH - 1})
if present ~= ARGV[1] then return redis.call('GET', KEYS[1]) end
if ARGV[2] == '' then redis.call('UNLINK', KEYS[1])
elseif ARGV[3] == '' then redis.call('SET', KEYS[1], ARGV[2])
else redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3]) end
return 1`;

export const SWAP_SHA = createHash("sha1").update(SWAP).digest("hex");
