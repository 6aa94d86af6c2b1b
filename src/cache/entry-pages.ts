// Lists entries with what is known about them, filtered, in pages that can be continued later.
import { requireFlag, requireOptions, requireSignal } from "../core/arguments.ts";
import type { Beginning } from "../core/codec.ts";
import { CodecError, ConfigError, describeArrival, unknownPosition } from "../core/errors.ts";
import { glob } from "../core/glob/glob.ts";
import { requireTags } from "../core/keys.ts";
import type { Inspection, Namespace, Preview } from "../core/namespace.ts";

export type EntryState = "fresh" | "stale";

/** What is known about an entry. Times are seconds. */
export interface EntryInfo {
  readonly key: string;
  /** `stale`: expired, and kept for stale-while-revalidate or stale-if-error. */
  readonly state: EntryState;
  /** Infinity: it never expires. 0 once stale. */
  readonly ttl: number;
  /** How long it may be served stale after that, or from now on if it is stale. */
  readonly staleFor: number;
  /** Since it was stored; undefined where the store does not record it. */
  readonly age?: number;
  /** In the store, its key and overhead included; of `inspect` in a shared store: its value. */
  readonly bytes: number;
  readonly tags: readonly string[];
  /** Such as `string`, `object`, `array`, `map`, `uint8array`; undefined where it was not asked for or not read. */
  readonly type?: string;
}

export interface EntryPage {
  readonly entries: readonly EntryInfo[];
  /** Live entries looked at for this page, those that the filter left out included. */
  readonly scanned: number;
  /** Continues after this page; undefined for the last one, and where the store cannot. */
  readonly cursor: string | undefined;
}

export interface EntryScanOptions {
  /** Keys that start with this text. */
  readonly prefix?: string;
  /** Keys that match this glob. */
  readonly match?: string;
  /** Entries with at least one of these tags. */
  readonly tags?: string | readonly string[];
  /** Default: both. */
  readonly state?: EntryState;
  /** Entries whose values are of this type. Implies `types`. */
  readonly type?: string;
  /** Also reads the beginnings of the values, for their types. Default: false. */
  readonly types?: boolean;
  /** The `cursor` of an earlier page, with the same filter. */
  readonly cursor?: string;
  /** Ends the scan when it aborts. */
  readonly signal?: AbortSignal;
}

interface ScanRequest {
  readonly matches: (entry: Inspection) => boolean;
  readonly state: EntryState | undefined;
  readonly type: string | undefined;
  readonly types: boolean;
  readonly cursor: string | undefined;
  readonly signal: AbortSignal | undefined;
}

/** Read of a value for its type. */
const TYPE_BYTES = 64;
/** Values read at once. */
const READ_BATCH = 32;

const NAMES = ["prefix", "match", "tags", "state", "type", "types", "cursor", "signal"];

/** Throws ConfigError, and InvalidKeyError for an invalid glob or tag. */
export function requireScanOptions(options: EntryScanOptions): ScanRequest {
  requireOptions(options, NAMES);
  const { state, tags = [] } = options;
  if (state !== undefined && state !== "fresh" && state !== "stale") {
    throw new ConfigError(
      "ARGUMENT_INVALID",
      `state must be "fresh" or "stale", got ${describeArrival(state)}`,
    );
  }
  const [prefix, type, cursor] = (["prefix", "type", "cursor"] as const).map((name) =>
    requireText(options[name], name),
  );
  const matches = options.match === undefined ? undefined : glob(options.match);
  const wanted = new Set(requireTags(tags));
  return {
    matches: (entry) =>
      (prefix === undefined || entry.key.startsWith(prefix)) &&
      (matches === undefined || matches(entry.key)) &&
      (wanted.size === 0 || entry.tags.some((tag) => wanted.has(tag))),
    state,
    type,
    types: type !== undefined || requireFlag(options.types, "types", false),
    cursor,
    signal: requireSignal(options.signal),
  };
}

function requireText(value: unknown, name: string): string | undefined {
  if (value === undefined || typeof value === "string") return value;
  throw new ConfigError("ARGUMENT_INVALID", `${name} must be a string, got ${describeArrival(value)}`);
}

/** `store`: the kind of store, which cursors carry, so that one of another kind is noticed. */
export async function* scanPages(
  namespace: Namespace,
  store: string,
  { matches, state, type, types, cursor, signal }: ScanRequest,
): AsyncIterable<EntryPage> {
  let position: string | undefined;
  const batches = namespace.scan({
    signal,
    stale: state !== "fresh",
    ...(cursor !== undefined && { from: positionOf(cursor, store) }),
    at: (next) => {
      position = next;
    },
  });
  for await (const batch of batches) {
    const after = position;
    position = undefined;
    const found = batch.filter(
      (entry) => matches(entry) && (state === undefined || entry.fresh === (state === "fresh")),
    );
    const entries = types ? await typed(namespace, found) : found.map((entry) => entryInfo(entry));
    yield {
      entries: type === undefined ? entries : entries.filter((entry) => entry.type === type),
      scanned: batch.length,
      cursor: after === undefined ? undefined : `${store}:${after}`,
    };
  }
}

function positionOf(cursor: string, store: string): string {
  const [, kind, position] = /^([^:]*):(.*)$/s.exec(cursor) ?? [];
  if (kind !== store || position === undefined) throw unknownPosition(cursor);
  return position;
}

async function typed(namespace: Namespace, found: readonly Inspection[]): Promise<readonly EntryInfo[]> {
  const entries: EntryInfo[] = [];
  for (let at = 0; at < found.length; at += READ_BATCH) {
    const part = found.slice(at, at + READ_BATCH).map(async (entry) => {
      return entryInfo(entry, await readableType(namespace, entry.key));
    });
    entries.push(...(await Promise.all(part)));
  }
  return entries;
}

/** Undefined if it is damaged, or was written by a newer version: that must not end the scan. */
async function readableType(namespace: Namespace, key: string): Promise<string | undefined> {
  try {
    return typeIn(await namespace.preview(key, TYPE_BYTES));
  } catch (error) {
    if (error instanceof CodecError) return undefined;
    throw error;
  }
}

/** Undefined if the value cannot be read, or not in part. */
const typeIn = (preview: Preview | undefined): string | undefined =>
  preview?.beginning === undefined || isUnknown(preview.beginning)
    ? undefined
    : typeOf(preview.beginning.value);

const isUnknown = ({ value, isWhole }: Beginning): boolean => value === undefined && !isWhole;

/** What is known about one entry; its type from the beginning of its value. */
export async function inspected(namespace: Namespace, key: string): Promise<EntryInfo | undefined> {
  const found = await namespace.preview(key, TYPE_BYTES);
  return found && entryInfo(found, typeIn(found));
}

export function entryInfo(
  { key, fresh, ttlMs, staleMs, ageMs, bytes, tags }: Inspection,
  type?: string,
): EntryInfo {
  return {
    key,
    state: fresh ? "fresh" : "stale",
    ttl: ttlMs / 1_000,
    staleFor: staleMs / 1_000,
    ...(ageMs !== undefined && { age: ageMs / 1_000 }),
    bytes,
    tags,
    ...(type !== undefined && { type }),
  };
}

/** The type of a value in one word. */
export function typeOf(value: unknown): string {
  if (value === null) return "null";
  if (typeof value !== "object") return typeof value;
  return Object.prototype.toString.call(value).slice(8, -1).toLowerCase();
}
