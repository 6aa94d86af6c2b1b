// The commands around the cache: packages and the shell.
import type { CommandSpec } from "../command-spec.ts";
import { EXTRA_NAMES } from "../doctor/extras.ts";

export const TOOLS: readonly CommandSpec[] = [
  {
    name: "extras",
    group: "Tools",
    summary: "print the command that installs what a feature needs",
    detail: `Features: ${EXTRA_NAMES.join(", ")}. For the package manager that the folder uses.`,
    arguments: [{ name: "<names...>", summary: "the features", completes: EXTRA_NAMES }],
    options: [{ flags: "--install", summary: "run it" }],
    examples: [
      ["xcache extras monitoring web", "what to install"],
      ["xcache extras full --install", "installs everything"],
    ],
    load: () => import("../commands/extras.ts"),
  },
  {
    name: "completion",
    group: "Tools",
    summary: "print a script that completes commands, flags, tags and keys",
    detail:
      "Tags and keys come from the store, as far as they are found within half a second, or the --timeout of the line.",
    arguments: [{ name: "<shell>", summary: "bash, zsh or fish", completes: ["bash", "zsh", "fish"] }],
    examples: [
      ['eval "$(xcache completion bash)"', "in ~/.bashrc"],
      ['eval "$(xcache completion zsh)"', "in ~/.zshrc, after compinit"],
      ["xcache completion fish > ~/.config/fish/completions/xcache.fish", "for fish"],
    ],
    load: () => import("../commands/completion.ts"),
  },
];
