// The flags that every command takes, before or after its name.
import type { OptionSpec } from "../command-spec.ts";
import { duration, repeated } from "./values.ts";

export const GLOBAL_OPTIONS: readonly OptionSpec[] = [
  {
    flags: "--kv-url <url>",
    summary: "address of the store; else XCACHE_KV_URL, the file, redis://localhost:6379/0",
  },
  { flags: "--config <file>", summary: "YAML file with the configuration", completes: "files" },
  { flags: "--prefix <prefix>", summary: "key prefix; else XCACHE_KEY_PREFIX, the file, xcache" },
  {
    flags: "--namespace <name>",
    summary: "a namespace below the prefix; again for one below that",
    parse: repeated,
  },
  {
    flags: "--timeout <duration>",
    summary: "how long the store may take to connect and to answer, such as 500ms or 5s",
    parse: duration,
  },
  { flags: "--json", summary: "data as JSON, one object a line" },
  { flags: "--no-color", summary: "no colours (so does NO_COLOR; FORCE_COLOR asks for them)" },
];
