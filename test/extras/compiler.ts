// Compiles consumers in a folder with our own TypeScript, and looks at them and at the declarations of the package.
import { join } from "node:path";
import ts from "typescript";
import { STRICT, type TYPE_CHECKS } from "../../scripts/test/extras-folder.mjs";
import type { SharedSources } from "../support/shared-sources.ts";

const TYPES = join(import.meta.dirname, "../../node_modules/@types");

/** What the compiler has to say, as `file message`. */
export function typeErrorsOf(
  folder: string,
  { files, options }: (typeof TYPE_CHECKS)[number],
  sources: SharedSources,
): string[] {
  const settings = { ...STRICT, ...options, typeRoots: [TYPES] };
  const { options: parsed, errors } = ts.convertCompilerOptionsFromJson(settings, folder);
  const roots = files.map((file) => join(folder, file));
  const program = ts.createProgram(roots, parsed, sources.host(parsed));
  const own = program.getSourceFiles().filter(({ fileName }) => fileName.startsWith(folder));
  const found = [
    ...errors,
    ...program.getOptionsDiagnostics(),
    ...own.flatMap((source) => [
      ...program.getSyntacticDiagnostics(source),
      ...program.getSemanticDiagnostics(source),
    ]),
  ];
  return found.map(({ file: source, messageText }) => {
    const message = ts.flattenDiagnosticMessageText(messageText, "\n");
    return `${source?.fileName.slice(folder.length + 1) ?? ""} ${message}`;
  });
}
