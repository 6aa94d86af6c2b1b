// Type-checks and prepares the code blocks of the docs as a reader would use them: importing xcache by its name.
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import ts from "typescript";

const ROOT = resolve(import.meta.dirname, "../..");
/** Inside the package, so that `xcache` and its dependencies resolve from here. */
const SNIPPET_FOLDER = join(ROOT, ".cache", "snippets");

export interface Snippet {
  /** The page it stands on, relative to the root. */
  readonly page: string;
  /** Of its first line on that page. */
  readonly line: number;
  readonly code: string;
}

const fileOf = ({ page, line }: Snippet): string =>
  join(SNIPPET_FOLDER, `${page.replace(/\.md$/, "").replaceAll("/", "--")}--${line}.ts`);

/** Where a snippet is put to be run. */
export const programOf = (snippet: Snippet): string => fileOf(snippet).replace(/ts$/, "mjs");

/** All snippets in one program against src/. Returns what a reader would see go wrong, as `page:line message`. */
export function typeErrorsOf(snippets: readonly Snippet[]): string[] {
  const byFile = new Map(snippets.map((snippet) => [fileOf(snippet), snippet]));
  const options = compilerOptions();
  const host = ts.createCompilerHost(options);
  const { getSourceFile, fileExists, readFile } = host;
  // Each is a module of its own, even without an import.
  const textOf = (path: string) => {
    const snippet = byFile.get(path);
    return snippet && `${snippet.code}\nexport {};\n`;
  };
  host.fileExists = (path) => byFile.has(path) || fileExists(path);
  host.readFile = (path) => textOf(path) ?? readFile(path);
  host.getSourceFile = (path, target, ...rest) => {
    const text = textOf(path);
    return text === undefined
      ? getSourceFile(path, target, ...rest)
      : ts.createSourceFile(path, text, target);
  };
  const program = ts.createProgram([...byFile.keys()], options, host);
  return [...byFile].flatMap(([path, snippet]) => {
    const source = program.getSourceFile(path)!;
    const diagnostics = [
      ...program.getSyntacticDiagnostics(source),
      ...program.getSemanticDiagnostics(source),
    ];
    return diagnostics.map(({ start = 0, messageText }) => {
      const line = snippet.line + source.getLineAndCharacterOfPosition(start).line;
      return `${snippet.page}:${line} ${ts.flattenDiagnosticMessageText(messageText, "\n")}`;
    });
  });
}

/** The project's own strictness, with the entry points of package.json mapped to their sources. */
function compilerOptions(): ts.CompilerOptions {
  const { config } = ts.readConfigFile(join(ROOT, "tsconfig.json"), ts.sys.readFile);
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, ROOT);
  return { ...options, noUnusedLocals: false, noUnusedParameters: false, paths: entryPoints() };
}

function entryPoints(): Record<string, string[]> {
  const { exports } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as {
    exports: Record<string, string | { default: string }>;
  };
  return Object.fromEntries(
    Object.entries(exports).flatMap(([subpath, target]) => {
      if (typeof target === "string") return [];
      const source = target.default.replace("./dist/", "src/").replace(/js$/, "ts");
      return [[join("xcache", subpath), [join(ROOT, source)]]];
    }),
  );
}

/** A snippet as plain JavaScript for the installed Node. */
export function toJavaScript({ code }: Snippet): string {
  const options = { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 };
  return ts.transpileModule(code, { compilerOptions: options }).outputText;
}
