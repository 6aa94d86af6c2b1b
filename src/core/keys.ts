// Names: which keys are allowed, how a namespace's keys are spelled in a store, and glob patterns.
import { ConfigError, describeArrival, InvalidKeyError } from "./errors.ts";

/** Longest key, tag, pattern or namespace, in bytes of UTF-8. */
export const MAX_KEY_BYTES = 64 * 1024;

/** A UTF-16 unit takes at most 3 bytes, so names up to here need no counting. */
const UNCOUNTED = Math.floor(MAX_KEY_BYTES / 3);

/** Short, because it stands before every operation. */
function requireName(what: string, value: unknown): asserts value is string {
  if (typeof value !== "string" || value.length === 0) throw noName(what, value);
  if (value.length > UNCOUNTED) requireFewBytes(what, value);
}

function noName(what: string, value: unknown): InvalidKeyError {
  return new InvalidKeyError(`${what} must be a non-empty string, got ${describeArrival(value)}`);
}

function requireFewBytes(what: string, value: string): void {
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

/** Whether it is a tag beyond doubt: one that is very long is left to `requireTags`. */
export const isTag = (tag: unknown): boolean =>
  typeof tag === "string" && tag.length > 0 && tag.length <= UNCOUNTED;

/** A list of its own, without repetitions; a single string counts as a list of one. */
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
 * How records are spelled in a store. In a namespace's path `%`, `:`, `!` and `/` are escaped, so the first
 * `:` or `!` ends it: no user key can reach another namespace or the library's own records. So are braces, which decide
 * over the place of a key in a cluster: a namespace is spread over all of it.
 */
export interface Spelling {
  /** Entries: `path:key`. */
  readonly entryPrefix: string;
  /** What everything in the namespaces below begins with. */
  readonly below: string;
  entry(key: string): string;
  /** The user's key behind a spelled one. */
  keyOf(spelled: string): string;
  tagStamp(tag: string): string;
  groupStamp(group: number): string;
  namespaceStamp(): string;
  /** Anything else the library keeps, by its own name. */
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

/** How many groups tags fall into; see stamps.ts. */
export const TAG_GROUPS = 64;

/** FNV-1a over UTF-16 units: stable across processes and versions. */
export function tagGroup(tag: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < tag.length; at++) hash = Math.imul(hash ^ tag.charCodeAt(at), 0x01000193);
  return (hash >>> 0) % TAG_GROUPS;
}
