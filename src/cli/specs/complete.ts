// The command behind the completion scripts. Not in the table, which it reads itself.
import type { CommandSpec } from "../command-spec.ts";

export const COMPLETE: CommandSpec = {
  name: "complete",
  group: "Tools",
  summary: "what can stand at the end of a command line; asked by the completion scripts",
  arguments: [{ name: "[words...]", summary: "the words after xcache, the last one unfinished" }],
  options: [
    {
      flags: "--bash-breaks <characters>",
      summary: "the one argument is the line of bash up to the cursor, whose words these characters break",
    },
  ],
  examples: [],
  isHidden: true,
  load: () => import("../commands/complete.ts"),
};
