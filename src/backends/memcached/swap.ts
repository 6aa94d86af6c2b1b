// Compare-and-swap of a record, on one connection from beginning to end.
//
// memcached compares its own number (CAS), not our version. So the record is read, its version compared, and replaced
// only if its CAS is still the one that was read. All of it happens on one connection: another one may lead to a server
// that was started anew, where the same number stands for something else. A connection that breaks ends the swap.
import type { KeyedRecord, SwapResult } from "../../core/backend.ts";
import { BackendError } from "../../core/errors.ts";
import { decodeRecord } from "../../core/frame/frame.ts";
import type { StoreRecord, Token } from "../../core/record.ts";
import type { Connection } from "./connection.ts";
import type { MetaReply } from "./meta-reader.ts";

export type Next = Omit<KeyedRecord, "key">;

export interface Swap {
  readonly connection: Connection;
  readonly key: string;
  readonly expected: Token | undefined;
  readonly next: Next | undefined;
  /** Stores the next record with these flags besides those of every record. */
  store(next: Next, flags: string): Promise<MetaReply>;
}

/** Others were faster so often that something must be wrong. */
const MOST_ROUNDS = 1_000;
const ADD = " c ME";
const READ = " b v c";
const WON: SwapResult = { won: true };

export async function swapRecord(swap: Swap): Promise<SwapResult> {
  if (await isSwappedUnread(swap)) return WON;
  for (let round = 0; round < MOST_ROUNDS; round++) {
    const result = await swapWhatIsThere(swap);
    if (result !== undefined) return result;
  }
  throw new BackendError("STORE_FAILED", `a record was changed by others ${MOST_ROUNDS} times in a row`);
}

/** Where nothing is expected, or the CAS of what is. */
async function isSwappedUnread(swap: Swap): Promise<boolean> {
  const { connection, key, expected, next } = swap;
  if (expected === undefined) return next !== undefined && isStored(swap, next, ADD);
  const cas = connection.cas.take(key, expected);
  return cas !== undefined && isReplaced(swap, cas);
}

/** undefined: somebody changed it in between. */
async function swapWhatIsThere(swap: Swap): Promise<SwapResult | undefined> {
  const { connection, key, expected, next } = swap;
  const reply = await connection.command("mg", key, READ);
  const isThere = reply.code === "VA";
  const current = isThere ? recordIn(reply, key) : undefined;
  if (current?.version !== expected) return { won: false, current };
  // What stands there may be of another key with the same hash: for this key it is nothing, and makes way.
  if (isThere) return (await isReplaced(swap, reply.cas)) ? WON : undefined;
  return next === undefined || (await isStored(swap, next, ADD)) ? WON : undefined;
}

async function isReplaced(swap: Swap, cas: string): Promise<boolean> {
  const { connection, key, next } = swap;
  if (next !== undefined) return isStored(swap, next, ` c C${cas}`);
  return (await connection.command("md", key, ` b C${cas}`)).code === "HD";
}

async function isStored({ connection, key, store }: Swap, next: Next, flags: string): Promise<boolean> {
  const { code, cas } = await store(next, flags);
  if (code !== "HD") return false;
  connection.cas.keep(key, next.record.version, cas);
  return true;
}

export function recordIn({ bytes, start, end }: MetaReply, key: string): StoreRecord | undefined {
  return decodeRecord(bytes, key, start, end);
}
