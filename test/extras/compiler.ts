// Compiles consumers in a folder with our own TypeScript, and looks at them and at the declarations of the package.
import { join } from "node:path";
import ts from "typescript";
import { STRICT, type TYPE_CHECKS } from "../../scripts/test/extras-folder.mjs";

const TYPES = join(import.meta.dirname, "../../node_modules/@types");

/** What the compiler has to say, as `file message`. */
export function typeErrorsOf(folder: string, { files, options }: (typeof TYPE_CHECKS)[number]): string[] {
  const settings = { ...STRICT, ...options, typeRoots: [TYPES] };
  const { options: parsed, errors } = ts.convertCompilerOptionsFromJson(settings, folder);
  const roots = files.map((file) => join(folder, file));
  const program = ts.createProgram(roots, parsed, sharingHost(parsed));
  const sources = program.getSourceFiles().filter(({ fileName }) => fileName.startsWith(folder));
  const found = [
    ...errors,
    ...program.getOptionsDiagnostics(),
    ...sources.flatMap((source) => [
      ...program.getSyntacticDiagnostics(source),
      ...program.getSemanticDiagnostics(source),
    ]),
  ];
  return found.map(({ file: source, messageText }) => {
    const message = ts.flattenDiagnosticMessageText(messageText, "\n");
    return `${source?.fileName.slice(folder.length + 1) ?? ""} ${message}`;
  });
}

const shared = new Map<string, ts.SourceFile | undefined>();

/** Reads the declarations of the language and of Node once for all programs: most of the work. */
function sharingHost(options: ts.CompilerOptions): ts.CompilerHost {
  const host = ts.createCompilerHost(options);
  const { getSourceFile } = host;
  host.getSourceFile = (path, ...rest) => {
    if (!/\/typescript\/lib\/|\/@types\/node\//.test(path)) return getSourceFile(path, ...rest);
    if (!shared.has(path)) shared.set(path, getSourceFile(path, ...rest));
    return shared.get(path);
  };
  return host;
}
