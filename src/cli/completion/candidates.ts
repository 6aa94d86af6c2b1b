// Determines from the command table what can complete the last word of a command line.
import type { CommandSpec, Completes, OptionSpec } from "../command-spec.ts";
import { COMMANDS, GLOBAL_OPTIONS } from "../specs/table.ts";

export interface CompletionPosition {
  /** The incomplete word, or the part of it after `--flag=`. */
  readonly word: string;
  /** The `--flag=` before it in the same word, or empty. */
  readonly lead: string;
  readonly completes: Completes;
  /** Values of the earlier flags by long name; they say which store to read. */
  readonly flags: ReadonlyMap<string, readonly string[]>;
}

const longName = ({ flags }: OptionSpec): string => /--[\w-]+/.exec(flags)?.[0] ?? "";
const shortName = ({ flags }: OptionSpec): string | undefined => /^-\w\b/.exec(flags)?.[0];
const takesValue = ({ flags }: OptionSpec): boolean => flags.includes("<");

/** `words`: those after `xcache`, the last one incomplete. */
export function completionPosition(words: readonly string[]): CompletionPosition {
  const before = words.slice(0, -1);
  const last = words.at(-1) ?? "";
  const flags = new Map<string, readonly string[]>();
  const operands: string[] = [];
  let command: CommandSpec | undefined;
  let awaiting: OptionSpec | undefined;
  const addValue = (option: OptionSpec, value: string): void => {
    flags.set(longName(option), [...(flags.get(longName(option)) ?? []), value]);
  };
  for (const each of before) {
    const option = findOption(command, each);
    if (option !== undefined) {
      awaiting = takesValue(option) && !each.includes("=") ? option : undefined;
      if (each.includes("=")) addValue(option, each.slice(each.indexOf("=") + 1));
    } else if (awaiting !== undefined) {
      addValue(awaiting, each);
      if (!awaiting.flags.includes("...")) awaiting = undefined;
    } else if (command === undefined) command = COMMANDS.find(({ name }) => name === each);
    else operands.push(each);
  }
  const at = (completes: Completes, lead = ""): CompletionPosition => ({
    word: last.slice(lead.length),
    lead,
    completes,
    flags,
  });
  const valued = last.startsWith("--") && last.includes("=") ? findOption(command, last) : undefined;
  if (valued !== undefined) return at(valued.completes ?? [], last.slice(0, last.indexOf("=") + 1));
  if (last.startsWith("-")) return at(optionNames(command));
  if (awaiting !== undefined) return at(awaiting.completes ?? []);
  if (command === undefined) return at(commandNames());
  return at(argumentAt(command, operands.length)?.completes ?? []);
}

const commandNames = (): readonly string[] => [...COMMANDS.map(({ name }) => name), "help"];

const optionsOf = (command: CommandSpec | undefined): readonly OptionSpec[] => [
  ...(command?.options ?? []),
  ...GLOBAL_OPTIONS,
];

/** The options of a command and the global ones. */
export const optionNames = (command: CommandSpec | undefined): readonly string[] => [
  ...optionsOf(command).map(longName),
  "--help",
];

function findOption(command: CommandSpec | undefined, word: string): OptionSpec | undefined {
  const [name] = word.split("=");
  return optionsOf(command).find((option) => longName(option) === name || shortName(option) === name);
}

/** A variadic argument takes all remaining words. */
function argumentAt({ arguments: list = [] }: CommandSpec, at: number) {
  const last = list.at(-1);
  return list[at] ?? (last?.name.includes("...") ? last : undefined);
}
