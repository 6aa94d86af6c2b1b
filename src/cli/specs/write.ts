// The commands that change what is in a cache.
import type { CommandSpec } from "../command-spec.ts";
import { lifetime, repeated, tagList } from "./values.ts";

const YES = { flags: "-y, --yes", summary: "do not ask; needed where nobody can be asked" } as const;
const DRY_RUN = { flags: "--dry-run", summary: "only count" } as const;

export const WRITE_COMMANDS: readonly CommandSpec[] = [
  {
    name: "set",
    group: "Change",
    summary: "store a value under a key",
    detail:
      "A value that is JSON is stored as what it says (5 is a number, {} an object), anything else as text.",
    arguments: [
      { name: "<key>", summary: "the key", completes: "keys" },
      { name: "<value>", summary: "the value; - reads it from the standard input" },
    ],
    options: [
      {
        flags: "--ttl <duration>",
        summary: "how long it lives, such as 90, 5m or never; else default_ttl",
        parse: lifetime,
      },
      {
        flags: "--tags <tags>",
        summary: "tags it carries, between commas",
        parse: tagList,
        completes: "tags",
      },
      { flags: "--string", summary: "as text, even if it is JSON" },
    ],
    examples: [
      [`xcache set user:1 '{"name":"Ada"}' --ttl 10m --tags users,team:7`, "an object"],
      ["xcache set page - --ttl 1h < page.html", "text from a file"],
    ],
    load: () => import("../commands/set.ts"),
  },
  {
    name: "delete",
    group: "Change",
    summary: "remove entries by their keys",
    arguments: [{ name: "<keys...>", summary: "the keys", completes: "keys" }],
    examples: [["xcache delete user:1 user:2", "says how many of them were there"]],
    load: () => import("../commands/delete.ts"),
  },
  {
    name: "invalidate",
    group: "Change",
    summary: "remove entries by tag, by pattern, or by a list of keys",
    detail:
      "Counts what would go, asks, and then removes it. A tag is invalidated in one step, however many entries carry it; loads under way are not stored.",
    options: [
      { flags: "-t, --tag <tag...>", summary: "entries that carry one of these tags", completes: "tags" },
      { flags: "-p, --pattern <glob>", summary: "entries whose keys match" },
      {
        flags: "--keys-from <file>",
        summary: "keys from a file, one a line or as list --json prints them; - is the standard input",
        completes: "files",
      },
      DRY_RUN,
      YES,
      { flags: "--no-count", summary: "do not look through the store first" },
    ],
    examples: [
      ["xcache invalidate --tag users", "asks first"],
      ["xcache invalidate --pattern 'session:*' --dry-run", "how many would go"],
      ["xcache list --tag old --json | xcache invalidate --keys-from - --yes", "in a pipe"],
    ],
    load: () => import("../commands/invalidate.ts"),
  },
  {
    name: "clear",
    group: "Change",
    summary: "remove every entry of the prefix or namespace",
    detail: "Other prefixes of the same store are not touched. Statistics are kept.",
    options: [DRY_RUN, YES],
    examples: [["xcache clear --prefix shop", "asks first"]],
    load: () => import("../commands/clear.ts"),
  },
  {
    name: "warm",
    group: "Change",
    summary: "store entries from a file, where there are none yet",
    detail:
      'JSON Lines: {"key":"user:1","value":{"name":"Ada"},"ttl_seconds":600,"tags":["users"]}. Only key and value are needed. Entries that are there already stay as they are.',
    arguments: [{ name: "<file>", summary: "the file; - is the standard input", completes: "files" }],
    options: [
      {
        flags: "--ttl <duration>",
        summary: "for entries without one of their own; else default_ttl",
        parse: lifetime,
      },
      { flags: "--tag <tag>", summary: "a tag for all of them; may be repeated", parse: repeated },
    ],
    examples: [["xcache warm products.jsonl --ttl 1h", "before the traffic comes"]],
    load: () => import("../commands/warm.ts"),
  },
  {
    name: "import",
    group: "Change",
    summary: "store the entries of an exported file",
    detail:
      "Replaces entries that are there. An entry ends when it would have ended in the cache it came from; what has ended since is left out.",
    arguments: [{ name: "<file>", summary: "the file; - is the standard input", completes: "files" }],
    examples: [["xcache import backup.jsonl --kv-url redis://new:6379/0", "into another store"]],
    load: () => import("../commands/import.ts"),
  },
];
