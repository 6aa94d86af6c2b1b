// The commands that change a cache.
import type { CommandSpec } from "../command-spec.ts";
import { lifetime, tagList } from "./values.ts";

const YES = {
  flags: "-y, --yes",
  summary: "skip the confirmation; required when stdin is not a terminal",
} as const;
const DRY_RUN = { flags: "--dry-run", summary: "only count the entries" } as const;

export const WRITE_COMMANDS: readonly CommandSpec[] = [
  {
    name: "set",
    group: "Change",
    summary: "store a value under a key",
    detail:
      "A value that is valid JSON is stored parsed (5 as a number, {} as an object), anything else as text.",
    arguments: [
      { name: "<key>", summary: "the key", completes: "keys" },
      { name: "<value>", summary: "the value; - reads it from stdin" },
    ],
    options: [
      {
        flags: "--ttl <duration>",
        summary: "time to live, such as 90, 5m or never (default: default_ttl)",
        parse: lifetime,
      },
      {
        flags: "-t, --tags <tags>",
        summary: "comma-separated tags",
        parse: tagList,
        completes: "tags",
      },
      { flags: "--string", summary: "store as text, even if it is valid JSON" },
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
    examples: [["xcache delete user:1 user:2", "prints how many existed"]],
    load: () => import("../commands/delete.ts"),
  },
  {
    name: "invalidate",
    group: "Change",
    summary: "remove entries by tag, by pattern, or by a list of keys",
    detail:
      "Counts the entries, asks for confirmation and removes them. Invalidating a tag is one operation, however many entries carry it; loads in flight are not stored.",
    options: [
      {
        flags: "-t, --tags <tags>",
        summary: "entries with at least one of these comma-separated tags",
        parse: tagList,
        completes: "tags",
      },
      { flags: "-p, --pattern <glob>", summary: "entries whose keys match the pattern" },
      {
        flags: "--keys-from <file>",
        summary: "keys from a file, one per line or as printed by list --json; - is stdin",
        completes: "files",
      },
      DRY_RUN,
      YES,
      { flags: "--no-count", summary: "skip the scan that counts the entries" },
    ],
    examples: [
      ["xcache invalidate --tags users", "asks first"],
      ["xcache invalidate --pattern 'session:*' --dry-run", "how many would be removed"],
      ["xcache list --tags old --json | xcache invalidate --keys-from - --yes", "in a pipe"],
    ],
    load: () => import("../commands/invalidate.ts"),
  },
  {
    name: "clear",
    group: "Change",
    summary: "remove all entries of the prefix or namespace",
    detail: "Other prefixes in the same store are not affected. Statistics are kept.",
    options: [DRY_RUN, YES],
    examples: [["xcache clear --prefix shop", "asks first"]],
    load: () => import("../commands/clear.ts"),
  },
  {
    name: "warm",
    group: "Change",
    summary: "store the entries of a file that do not exist yet",
    detail:
      'JSON Lines: {"key":"user:1","value":{"name":"Ada"},"ttl_seconds":600,"tags":["users"]}. Only key and value are required. Existing entries are kept.',
    arguments: [{ name: "<file>", summary: "input file; - is stdin", completes: "files" }],
    options: [
      {
        flags: "--ttl <duration>",
        summary: "ttl of entries without their own (default: default_ttl)",
        parse: lifetime,
      },
      { flags: "-t, --tags <tags>", summary: "comma-separated tags for all entries", parse: tagList },
    ],
    examples: [["xcache warm products.jsonl --ttl 1h", "warm the cache before it gets traffic"]],
    load: async () => ({ run: (await import("../commands/import.ts")).warm }),
  },
  {
    name: "import",
    group: "Change",
    summary: "store the entries of an exported file",
    detail:
      "Replaces existing entries. Entries keep their original expiry time; those that have expired since are skipped.",
    arguments: [{ name: "<file>", summary: "input file; - is stdin", completes: "files" }],
    examples: [["xcache import backup.jsonl --kv-url redis://new:6379/0", "into another store"]],
    load: () => import("../commands/import.ts"),
  },
];
