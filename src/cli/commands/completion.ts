// xcache completion: a script that makes a shell complete our commands.
import { CommandError } from "../command-error.ts";
import type { CommandInput } from "../command-spec.ts";
import { COMPLETION_SCRIPTS } from "../completion/script.ts";
import type { CommandContext } from "../context.ts";
import { EXIT, type ExitCode } from "../exit-code.ts";

export async function run({ out }: CommandContext, { args }: CommandInput): Promise<ExitCode> {
  const shell = args[0] ?? "";
  const script = COMPLETION_SCRIPTS.get(shell);
  if (script === undefined) {
    const shells = [...COMPLETION_SCRIPTS.keys()].join(", ");
    throw new CommandError(`there is no completion for ${JSON.stringify(shell)}`, `Name one of ${shells}.`);
  }
  if (out.json) await out.jsonLine({ shell, script });
  else await out.bytes(script);
  return EXIT.ok;
}
