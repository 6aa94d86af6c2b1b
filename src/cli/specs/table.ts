// The command table in help order, the tool commands, and the flags every command takes.
import type { CommandSpec, OptionSpec } from "../command-spec.ts";
import { EXTRA_NAMES } from "../doctor/extras.ts";
import { READ_COMMANDS } from "./read.ts";
import { duration, repeated } from "./values.ts";
import { WRITE_COMMANDS } from "./write.ts";

export const GLOBAL_OPTIONS: readonly OptionSpec[] = [
  {
    flags: "--kv-url <url>",
    summary: "store address (default: XCACHE_KV_URL, the file, then redis://localhost:6379/0)",
  },
  { flags: "--config <file>", summary: "YAML configuration file", completes: "files" },
  { flags: "--prefix <prefix>", summary: "key prefix (default: XCACHE_KEY_PREFIX, the file, then xcache)" },
  {
    flags: "--namespace <name>",
    summary: "namespace below the prefix; repeat it for nested namespaces",
    parse: repeated,
  },
  {
    flags: "--timeout <duration>",
    summary: "deadline for connecting and for every store operation, such as 500ms or 5s",
    parse: duration,
  },
  { flags: "--json", summary: "print data as JSON, one object per line" },
  { flags: "--no-color", summary: "disable colors (as NO_COLOR does; FORCE_COLOR enables them)" },
];

const TOOLS: readonly CommandSpec[] = [
  {
    name: "extras",
    group: "Tools",
    summary: "print the command that installs the packages a feature needs",
    detail: `Features: ${EXTRA_NAMES.join(", ")}. Uses the package manager of the current folder.`,
    arguments: [{ name: "<names...>", summary: "the features", completes: EXTRA_NAMES }],
    options: [{ flags: "--install", summary: "run the command" }],
    examples: [
      ["xcache extras monitoring web", "print the install command"],
      ["xcache extras full --install", "install everything"],
    ],
    load: () => import("../commands/extras.ts"),
  },
  {
    name: "db",
    group: "Tools",
    summary: "check or prepare a database whose changes invalidate the cache",
    detail:
      "db feed --check checks the server's settings and privileges, then the publication and slots of PostgreSQL, or the binary log and cascades of MariaDB, and exits 1 if there is a problem. db feed --sql prints the statements that set up the feed. Neither changes the database.",
    arguments: [{ name: "<topic>", summary: "feed", completes: ["feed"] }],
    options: [
      { flags: "--check", summary: "check the database" },
      { flags: "--sql", summary: "print the SQL statements to run" },
      { flags: "--connection <url>", summary: "postgres:// or mysql:// address (default: DATABASE_URL)" },
      {
        flags: "--publication <name>",
        summary: "PostgreSQL: publication, or channel with --notify (default: xcache)",
      },
      { flags: "--table <name>", summary: "a table whose reads are cached; repeatable", parse: repeated },
      {
        flags: "--notify",
        summary: "PostgreSQL, with --sql: triggers for servers without logical replication",
      },
    ],
    examples: [
      ["xcache db feed --check --table users", "with DATABASE_URL set"],
      ["xcache db feed --sql --table users --table orders > feed.sql", "for an administrator"],
      ["xcache db feed --check --connection mysql://xcache_feed@localhost/shop --table users", "MariaDB"],
    ],
    load: () => import("../commands/db.ts"),
  },
  {
    name: "completion",
    group: "Tools",
    summary: "print a shell script that completes commands, flags, tags and keys",
    detail:
      "Tags and keys are read from the store for up to half a second, or for the --timeout given on the line.",
    arguments: [{ name: "<shell>", summary: "bash, zsh or fish", completes: ["bash", "zsh", "fish"] }],
    examples: [
      ['eval "$(xcache completion bash)"', "in ~/.bashrc"],
      ['eval "$(xcache completion zsh)"', "in ~/.zshrc, after compinit"],
      ["xcache completion fish > ~/.config/fish/completions/xcache.fish", "for fish"],
    ],
    load: () => import("../commands/completion.ts"),
  },
];

export const COMMANDS: readonly CommandSpec[] = [...READ_COMMANDS, ...WRITE_COMMANDS, ...TOOLS];
