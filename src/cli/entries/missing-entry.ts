// What is said when there is nothing under a key.
import { CommandError } from "../command-error.ts";
import { EXIT } from "../exit-code.ts";
import { escapeControls } from "../terminal/escape.ts";

export function missingEntry(key: string): CommandError {
  return new CommandError(
    `there is no entry under "${escapeControls(key)}"`,
    "It may have expired or been invalidated; `xcache search` finds keys that are alike, --prefix and --namespace look elsewhere.",
    EXIT.failed,
  );
}
