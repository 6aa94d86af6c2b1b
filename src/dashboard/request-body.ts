// What a request to the dashboard says, checked.
import type { EntryScanOptions } from "../cache/entry-pages.ts";
import { InvalidKeyError, XCacheError } from "../core/errors.ts";
import { toError } from "../core/events.ts";
import { requireKey } from "../core/keys.ts";

/** A request that makes no sense; answered with 400. */
export class BadRequest extends Error {}

export type Body = Readonly<Record<string, unknown>>;

const RANGES = [900, 3_600, 21_600, 86_400, 604_800];
const MOST_KEYS = 200;

/** What a visitor may know of an error: those of others may say anything, and become warnings of the application. */
export function messageOf(error: unknown): string {
  if (error instanceof XCacheError || error instanceof BadRequest) return error.message;
  warnOnce(toError(error));
  return "the dashboard failed; the application's log may say more";
}

const warned = new Set<string>();
const MOST_WARNED = 100;

/** Every open page asks again every two seconds. */
function warnOnce({ message, stack = message }: Error): void {
  if (warned.has(message)) return;
  if (warned.size === MOST_WARNED) warned.clear();
  warned.add(message);
  process.emitWarning(`dashboard() failed: ${message}`, { type: "XCacheWarning", detail: stack });
}

export function rangeOf({ range }: Body): number {
  if (range === undefined) return 3_600;
  if (typeof range === "number" && RANGES.includes(range)) return range;
  throw new BadRequest(`range must be one of ${RANGES.join(", ")} seconds`);
}

export function textIn(body: Body, name: string): string | undefined {
  const value = body[name];
  if (value === undefined || value === null || typeof value === "string") return value ?? undefined;
  throw new BadRequest(`${name} must be a string`);
}

export function keyIn(body: Body): string {
  const key = textIn(body, "key");
  try {
    requireKey(key);
  } catch (error) {
    if (error instanceof InvalidKeyError) throw new BadRequest(error.message);
    throw error;
  }
  return key;
}

export function limitIn({ limit = 100 }: Body): number {
  if (typeof limit === "number" && Number.isInteger(limit) && limit > 0) return Math.min(limit, MOST_KEYS);
  throw new BadRequest("limit must be a whole number above 0");
}

export function scanOptions(body: Body): EntryScanOptions {
  const [prefix, match, tag, type, cursor, state] = ["prefix", "match", "tag", "type", "cursor", "state"].map(
    (name) => {
      const text = textIn(body, name);
      return text === "" ? undefined : text;
    },
  );
  if (state !== undefined && state !== "fresh" && state !== "stale") {
    throw new BadRequest("state must be fresh or stale");
  }
  return {
    ...(prefix !== undefined && { prefix }),
    ...(match !== undefined && { match }),
    ...(tag !== undefined && { tags: tag }),
    ...(type !== undefined && { type }),
    ...(state !== undefined && { state }),
    ...(cursor !== undefined && { cursor }),
    types: true,
  };
}
