// The commands that read a cache and change nothing.
import type { CommandSpec } from "../command-spec.ts";
import { duration, integer, tagList } from "./values.ts";

const PATTERN = {
  flags: "-p, --pattern <glob>",
  summary: "only keys that match the pattern, such as user:*",
} as const;
const TAGS = {
  flags: "-t, --tags <tags>",
  summary: "only entries with at least one of these comma-separated tags",
  parse: tagList,
  completes: "tags",
} as const;

export const READ_COMMANDS: readonly CommandSpec[] = [
  {
    name: "ping",
    group: "Inspect",
    summary: "test the connection to the store",
    detail: "Prints the latency, the kind of store and its version.",
    options: [
      { flags: "-c, --count <n>", summary: "number of pings (default: 1)", parse: integer(1, 1_000_000) },
    ],
    examples: [
      ["xcache ping --kv-url redis://cache.internal:6379/0", "check one store"],
      ["xcache ping --count 100", "minimum, average and maximum latency"],
    ],
    load: () => import("../commands/ping.ts"),
  },
  {
    name: "stats",
    group: "Inspect",
    summary: "show the statistics of all processes that use the cache",
    detail:
      "Processes with enable_metrics add their hits, operations, latencies and errors to per-minute counters in the store. Keys and memory are read from the store itself.",
    options: [
      { flags: "-w, --watch", summary: "refresh continuously; keys: p pause, r reset, h help, q quit" },
      {
        flags: "-i, --interval <duration>",
        summary: "with --watch: refresh interval (default: 2s)",
        parse: duration,
      },
      { flags: "-s, --since <duration>", summary: "period to cover (default: 1h)", parse: duration },
      {
        flags: "-c, --count <n>",
        summary: "with --watch: stop after n refreshes",
        parse: integer(1),
      },
      { flags: "--exact", summary: "count keys and bytes exactly instead of estimating" },
      { flags: "--functions", summary: "calls, hits and loads of each cached function (a day at most)" },
      { flags: "--processes", summary: "the processes that use the cache now" },
    ],
    examples: [
      ["xcache stats --since 24h", "the last day"],
      ["xcache stats --watch", "redrawn in place; one line per refresh when piped"],
      ["xcache stats --functions", "which functions hit, and how long their loads take"],
      ["xcache stats --json | jq .hit_rate", "for scripts"],
    ],
    load: () => import("../commands/stats.ts"),
  },
  {
    name: "list",
    group: "Inspect",
    summary: "list keys, optionally by glob pattern or tag",
    detail:
      "Prints keys while it scans the store with cursors; a key may appear twice if the store changes meanwhile. Control characters in keys are escaped; --json prints the exact keys.",
    options: [
      PATTERN,
      TAGS,
      { flags: "-n, --limit <n>", summary: "stop after n keys", parse: integer(1) },
      { flags: "-l, --long", summary: "also print ttl, size, age and tags" },
    ],
    examples: [
      ["xcache list --pattern 'user:*'", "quoted, so that the shell does not expand the star"],
      ["xcache list --tags users --long", "the entries that invalidating the tag would remove"],
      ["xcache list --json | jq -r .key", "for scripts"],
    ],
    load: () => import("../commands/list.ts"),
  },
  {
    name: "search",
    group: "Inspect",
    summary: "find keys similar to a text",
    detail:
      "Words match anywhere in a key and in any order. An exact occurrence scores 100; every typo lowers the score.",
    arguments: [{ name: "<text>", summary: "text to search for" }],
    options: [
      {
        flags: "-t, --threshold <n>",
        summary: "minimum score, 0 to 100 (default: 80)",
        parse: integer(0, 100),
      },
      {
        flags: "-n, --limit <n>",
        summary: "maximum number of keys (default: 10)",
        parse: integer(1, 10_000),
      },
    ],
    examples: [
      ["xcache search 'jon smith'", "finds user:john-smith"],
      ["xcache search invoice --threshold 60 --limit 50", "more matches, less similar ones included"],
    ],
    load: () => import("../commands/search.ts"),
  },
  {
    name: "get",
    group: "Inspect",
    summary: "show the value under a key",
    arguments: [{ name: "<key>", summary: "the key", completes: "keys" }],
    options: [{ flags: "-r, --raw", summary: "print text and bytes unchanged, without a trailing newline" }],
    examples: [
      ["xcache get user:1", "formatted for reading"],
      ["xcache get image:7 --raw > image.png", "raw bytes"],
      ["xcache get user:1 --json | jq .ttl_seconds", "with ttl, tags and size"],
    ],
    load: () => import("../commands/get.ts"),
  },
  {
    name: "tags",
    group: "Inspect",
    summary: "show the tags of an entry",
    arguments: [{ name: "<key>", summary: "the key", completes: "keys" }],
    examples: [["xcache tags user:1", "one per line"]],
    load: async () => ({ run: (await import("../commands/get.ts")).tags }),
  },
  {
    name: "health",
    group: "Inspect",
    summary: "check whether the cache works; exits 1 if it does not",
    options: [{ flags: "-d, --detailed", summary: "print every check" }],
    examples: [["xcache health --timeout 1s", "for a container's health check"]],
    load: () => import("../commands/health.ts"),
  },
  {
    name: "doctor",
    group: "Inspect",
    summary: "diagnose the setup and suggest fixes",
    detail:
      "Checks the connection, the server, its settings and the optional packages, and prints what needs attention. Exits 1 if there is a problem, 3 if the store cannot be reached.",
    options: [
      { flags: "-v, --verbose", summary: "also print every setting with its source, and every check" },
    ],
    examples: [["xcache doctor --config cache.yaml", "check the settings of a file"]],
    load: () => import("../commands/doctor.ts"),
  },
  {
    name: "advise",
    group: "Inspect",
    summary: "suggest improvements based on the metrics and a sample of the entries",
    detail:
      "Reports functions with a low hit rate, entries that never expire, tags that are invalidated constantly, large values, an open circuit breaker and a full store, each with its evidence. Samples up to 2,000 entries.",
    options: [{ flags: "-s, --since <duration>", summary: "period to cover (default: 1h)", parse: duration }],
    examples: [["xcache advise --since 24h", "the last day"]],
    load: () => import("../commands/advise.ts"),
  },
  {
    name: "ui",
    group: "Inspect",
    summary: "open the dashboard in the browser",
    detail:
      "Serves a page on 127.0.0.1 until Ctrl-C: metrics, keys, tags, functions, health, alerts and settings. Only a browser with the printed address can use it. By default it is read-only and hides values.",
    options: [
      { flags: "--port <n>", summary: "port (default: any free one)", parse: integer(1, 65_535) },
      { flags: "--allow-writes", summary: "allow deleting entries and invalidating tags" },
      { flags: "--show-values", summary: "show values; fields named like secrets stay hidden" },
      { flags: "--no-open", summary: "only print the address" },
      {
        flags: "--idle <duration>",
        summary: "exit when no page has been open for this long (default: never)",
        parse: duration,
      },
    ],
    examples: [
      ["xcache ui --kv-url redis://localhost:6379/0 --prefix shop", "inspect a cache"],
      ["xcache ui --show-values --allow-writes", "for debugging on your own machine"],
    ],
    load: () => import("../commands/ui.ts"),
  },
  {
    name: "export",
    group: "Inspect",
    summary: "write entries to a file",
    detail:
      'Writes JSON Lines with value, tags and expiry. Values that JSON cannot represent (dates, bytes, maps, ...) are written as {"$type":...} and restored by import.',
    arguments: [{ name: "<file>", summary: "output file; - is stdout", completes: "files" }],
    options: [PATTERN, TAGS, { flags: "-f, --force", summary: "replace an existing file" }],
    examples: [["xcache export backup.jsonl --pattern 'user:*'", "only matching entries"]],
    load: () => import("../commands/export.ts"),
  },
];
