// What may stand at the end of a command line, found in the table of commands.
import type { CommandSpec, Completes, OptionSpec } from "./command-spec.ts";
import { COMMANDS } from "./command-table.ts";
import { GLOBAL_OPTIONS } from "./specs/global.ts";

export interface CompletionPlace {
  /** The unfinished word. */
  readonly word: string;
  readonly completes: Completes;
  /** Values of the flags before it, by their long names; the store is looked for with them. */
  readonly flags: ReadonlyMap<string, string>;
}

const longName = ({ flags }: OptionSpec): string => /--[\w-]+/.exec(flags)?.[0] ?? "";
const shortName = ({ flags }: OptionSpec): string | undefined => /^-\w\b/.exec(flags)?.[0];
const takesValue = ({ flags }: OptionSpec): boolean => flags.includes("<");

/** `words`: those after `xcache`, the last one unfinished. */
export function completionPlace(words: readonly string[]): CompletionPlace {
  const before = words.slice(0, -1);
  const word = words.at(-1) ?? "";
  const flags = new Map<string, string>();
  const operands: string[] = [];
  let command: CommandSpec | undefined;
  let awaiting: OptionSpec | undefined;
  for (const each of before) {
    const option = findOption(command, each);
    if (option !== undefined) awaiting = takesValue(option) && !each.includes("=") ? option : undefined;
    else if (awaiting !== undefined) {
      flags.set(longName(awaiting), each);
      if (!awaiting.flags.includes("...")) awaiting = undefined;
    } else if (command === undefined) command = COMMANDS.find(({ name }) => name === each);
    else operands.push(each);
    if (option !== undefined && each.includes("="))
      flags.set(longName(option), each.slice(each.indexOf("=") + 1));
  }
  if (awaiting !== undefined && !word.startsWith("-"))
    return { word, completes: awaiting.completes ?? [], flags };
  if (word.startsWith("-")) return { word, completes: optionNames(command), flags };
  if (command === undefined) return { word, completes: commandNames(), flags };
  return { word, completes: argumentAt(command, operands.length)?.completes ?? [], flags };
}

const commandNames = (): readonly string[] => [...COMMANDS.map(({ name }) => name), "help"];

const optionsOf = (command: CommandSpec | undefined): readonly OptionSpec[] => [
  ...(command?.options ?? []),
  ...GLOBAL_OPTIONS,
];

const optionNames = (command: CommandSpec | undefined): readonly string[] => [
  ...optionsOf(command).map(longName),
  "--help",
];

function findOption(command: CommandSpec | undefined, word: string): OptionSpec | undefined {
  const [name] = word.split("=");
  return optionsOf(command).find((option) => longName(option) === name || shortName(option) === name);
}

/** A variadic argument takes all that follow. */
function argumentAt({ arguments: list = [] }: CommandSpec, at: number) {
  const last = list.at(-1);
  return list[at] ?? (last?.name.includes("...") ? last : undefined);
}
