// Keys, tags and namespaces: which names are valid, and how they are spelled in a store.
import { ConfigError, describeArrival, InvalidKeyError } from "./errors.ts";

/** Longest key, tag, pattern or namespace, in bytes of UTF-8. */
export const MAX_KEY_BYTES = 64 * 1024;

/** A UTF-16 unit takes at most 3 bytes, so the bytes of names up to this length need not be counted. */
const UNCOUNTED = Math.floor(MAX_KEY_BYTES / 3);

/** Kept short, because it runs before every operation. */
function requireName(what: string, value: unknown): asserts value is string {
  if (typeof value !== "string" || value.length === 0) throw invalidName(what, value);
  if (value.length > UNCOUNTED) requireByteLimit(what, value);
}

function invalidName(what: string, value: unknown): InvalidKeyError {
  return new InvalidKeyError(`${what} must be a non-empty string, got ${describeArrival(value)}`);
}

function requireByteLimit(what: string, value: string): void {
  const bytes = Buffer.byteLength(value);
  if (bytes <= MAX_KEY_BYTES) return;
  throw new InvalidKeyError(`${what} must be at most ${MAX_KEY_BYTES} bytes of UTF-8, got ${bytes} bytes`);
}

export function requireKey(key: unknown): asserts key is string {
  requireName("key", key);
}

export function requireNamespace(name: unknown): asserts name is string {
  requireName("namespace", name);
}

export function requirePattern(pattern: unknown): asserts pattern is string {
  requireName("pattern", pattern);
}

/** Whether it is certainly a valid tag; very long ones are left to `requireTags`. */
export const isTag = (tag: unknown): boolean =>
  typeof tag === "string" && tag.length > 0 && tag.length <= UNCOUNTED;

/** A copy of the tags without duplicates; a single string counts as a list of one. */
export function requireTags(tags: unknown): readonly string[] {
  if (typeof tags === "string") {
    requireName("tag", tags);
    return [tags];
  }
  if (!Array.isArray(tags)) {
    throw new ConfigError("ARGUMENT_INVALID", `tags must be a list of strings, got ${describeArrival(tags)}`);
  }
  for (const tag of tags) requireName("tag", tag);
  return tags.length > 1 ? [...new Set<string>(tags)] : [...tags];
}

/**
 * How records are spelled in a store. In a namespace's path `%`, `:`, `!` and `/` are escaped, so the first `:` or `!`
 * ends it: no user key can reach another namespace or the library's own records. Braces are escaped too, since a hash
 * tag would put the whole namespace into one cluster slot.
 */
export interface Spelling {
  /** Entries: `path:key`. */
  readonly entryPrefix: string;
  /** Prefix of everything in the child namespaces. */
  readonly below: string;
  entry(key: string): string;
  /** The user's key of a spelled one. */
  keyOf(spelled: string): string;
  tagStamp(tag: string): string;
  groupStamp(group: number): string;
  namespaceStamp(): string;
  /** Any other record of the library, by its own name. */
  own(name: string): string;
  child(name: string): Spelling;
}

const escapePart = (part: string): string =>
  part.replace(/[%:!/{}]/g, (character) => `%${character.charCodeAt(0).toString(16)}`);

export function spelling(prefix: string): Spelling {
  return spellingOf(escapePart(prefix));
}

function spellingOf(path: string): Spelling {
  const entryPrefix = `${path}:`;
  return {
    entryPrefix,
    below: `${path}/`,
    entry: (key) => entryPrefix + key,
    keyOf: (spelled) => spelled.slice(entryPrefix.length),
    tagStamp: (tag) => `${path}!t:${tag}`,
    groupStamp: (group) => `${path}!g:${group}`,
    namespaceStamp: () => `${path}!n`,
    own: (name) => `${path}!x:${name}`,
    child: (name) => spellingOf(`${path}/${escapePart(name)}`),
  };
}

/** Number of tag groups; see namespace-stamps.ts. */
export const TAG_GROUPS = 64;

/** FNV-1a over UTF-16 units: stable across processes and versions. */
export function tagGroup(tag: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < tag.length; at++) hash = Math.imul(hash ^ tag.charCodeAt(at), 0x01000193);
  return (hash >>> 0) % TAG_GROUPS;
}
