// How a finding of a check is printed.
import { escapeControls } from "../terminal/escape.ts";
import type { Output } from "../terminal/output.ts";
import type { Finding } from "./checks.ts";

export function findingLines(out: Output, { state, name, detail, advice }: Finding): readonly string[] {
  const { green, yellow, red, cyan } = out.data;
  const mark = { ok: green("ok"), warning: yellow("warning"), problem: red("problem") }[state];
  const line = `  ${mark} ${name.replaceAll("_", " ")}: ${escapeControls(detail)}`;
  return advice === null ? [line] : [line, `      ${cyan("→")} ${escapeControls(advice)}`];
}
