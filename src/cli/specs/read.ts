// The commands that look at a cache and change nothing.
import type { CommandSpec } from "../command-spec.ts";
import { duration, integer } from "./values.ts";

const PATTERN = { flags: "-p, --pattern <glob>", summary: "only keys that match, as in user:*" } as const;
const TAG = {
  flags: "-t, --tag <tag...>",
  summary: "only entries that carry one of these tags",
  completes: "tags",
} as const;

export const READ_COMMANDS: readonly CommandSpec[] = [
  {
    name: "ping",
    group: "Look",
    summary: "test the connection to the store",
    detail: "Says how long the store takes to answer, what it is, and its version.",
    options: [
      { flags: "-c, --count <n>", summary: "ask so often (default: 1)", parse: integer(1, 1_000_000) },
    ],
    examples: [
      ["xcache ping --kv-url redis://cache.internal:6379/0", "is it there, and how far away"],
      ["xcache ping --count 100", "least, average and greatest latency"],
    ],
    load: () => import("../commands/ping.ts"),
  },
  {
    name: "stats",
    group: "Look",
    summary: "show statistics of all processes that use the cache",
    detail:
      "Hit rate, operations, latency and errors are added up by the processes in the store itself, minute by minute, as far as they have enable_metrics on. Keys and memory are asked of the store.",
    options: [
      { flags: "-w, --watch", summary: "show it again and again; keys: p pause, r reset, h help, q quit" },
      {
        flags: "-i, --interval <duration>",
        summary: "how often, with --watch (default: 2s)",
        parse: duration,
      },
      { flags: "-s, --since <duration>", summary: "how far back (default: 1h)", parse: duration },
      {
        flags: "-c, --count <n>",
        summary: "with --watch: end after so many times",
        parse: integer(1),
      },
      { flags: "--exact", summary: "count the keys and bytes instead of estimating them" },
    ],
    examples: [
      ["xcache stats --since 24h", "the last day"],
      ["xcache stats --watch", "redrawn in place; one line at a time where it is piped"],
      ["xcache stats --json | jq .hit_rate", "for scripts"],
    ],
    load: () => import("../commands/stats.ts"),
  },
  {
    name: "list",
    group: "Look",
    summary: "list keys, by glob pattern and by tag",
    detail:
      "Prints as it looks through the store with cursors; a key may come twice while the store is changed. Control characters in keys are shown escaped; --json has the keys as they are.",
    options: [
      PATTERN,
      TAG,
      { flags: "-n, --limit <n>", summary: "end after so many keys", parse: integer(1) },
      { flags: "-l, --long", summary: "with time to live, size, age and tags" },
    ],
    examples: [
      ["xcache list --pattern 'user:*'", "quoted, so that the shell leaves the star alone"],
      ["xcache list --tag users --long", "what would go with the tag"],
      ["xcache list --json | jq -r .key", "for scripts"],
    ],
    load: () => import("../commands/list.ts"),
  },
  {
    name: "search",
    group: "Look",
    summary: "find keys that resemble a text",
    detail:
      "Words match anywhere in a key and in any order. 100 is an exact occurrence; each typo costs its share.",
    arguments: [{ name: "<text>", summary: "what to look for" }],
    options: [
      {
        flags: "-t, --threshold <n>",
        summary: "least score, 0 to 100 (default: 80)",
        parse: integer(0, 100),
      },
      { flags: "-n, --limit <n>", summary: "most keys (default: 10)", parse: integer(1, 10_000) },
    ],
    examples: [
      ["xcache search 'jon smith'", "finds user:john-smith"],
      ["xcache search invoice --threshold 60 --limit 50", "more, and less alike"],
    ],
    load: () => import("../commands/search.ts"),
  },
  {
    name: "get",
    group: "Look",
    summary: "show the value under a key",
    arguments: [{ name: "<key>", summary: "the key", completes: "keys" }],
    options: [{ flags: "-r, --raw", summary: "text and bytes as they are, without a line end" }],
    examples: [
      ["xcache get user:1", "readable"],
      ["xcache get image:7 --raw > image.png", "bytes"],
      ["xcache get user:1 --json | jq .ttl_seconds", "with time to live, tags and size"],
    ],
    load: () => import("../commands/get.ts"),
  },
  {
    name: "tags",
    group: "Look",
    summary: "show the tags of an entry",
    arguments: [{ name: "<key>", summary: "the key", completes: "keys" }],
    examples: [["xcache tags user:1", "one a line"]],
    load: () => import("../commands/tags.ts"),
  },
  {
    name: "health",
    group: "Look",
    summary: "tell whether the cache works; exits 1 when it does not",
    options: [{ flags: "-d, --detailed", summary: "each check on a line" }],
    examples: [["xcache health --timeout 1s", "for a container's health check"]],
    load: () => import("../commands/health.ts"),
  },
  {
    name: "doctor",
    group: "Look",
    summary: "look for what is wrong, and say what to do",
    detail:
      "Every setting with where it comes from, the connection, the server and its settings, and which optional packages are installed. Exits 1 when something is wrong, 3 when the store cannot be reached.",
    examples: [["xcache doctor --config cache.yaml", "with the settings of a file"]],
    load: () => import("../commands/doctor.ts"),
  },
  {
    name: "export",
    group: "Look",
    summary: "write entries to a file",
    detail:
      'JSON Lines, with value, tags and expiry. What JSON has no form for (dates, bytes, maps, ...) is written as {"$type":...} and comes back as it was.',
    arguments: [{ name: "<file>", summary: "the file; - is the standard output", completes: "files" }],
    options: [PATTERN, TAG, { flags: "-f, --force", summary: "replace the file if there is one" }],
    examples: [["xcache export backup.jsonl --pattern 'user:*'", "some of them"]],
    load: () => import("../commands/export.ts"),
  },
];
