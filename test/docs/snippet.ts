// The programs on a page of the docs: a code block and those that continue it, type-checked as a reader would use them.
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import ts from "typescript";
import { codeBlocksOf } from "../support/markdown.ts";
import { SharedSources } from "../support/shared-sources.ts";

const ROOT = resolve(import.meta.dirname, "../..");
/** Inside the package, so that `xcache` and its dependencies resolve from here. */
export const SNIPPET_FOLDER = join(ROOT, ".cache", "snippets");

/** `run` says what holds for every block anyway; `legacy` is for frameworks that need `experimentalDecorators`. */
const KNOWN_WORDS = ["run", "continued", "legacy"];
const LANGUAGES = ["ts", "js"];
/** The name of the file that a reader saves the block as. */
const FILE = /^\[[\w.-]+\]$/;

interface Part {
  /** Of its first line on the page. */
  readonly line: number;
  readonly code: string;
}

export interface Snippet {
  /** Relative to the root. */
  readonly page: string;
  readonly language: string;
  readonly legacy: boolean;
  readonly parts: readonly Part[];
}

/** Where a snippet begins, as `page:line`. */
export const placeOf = ({ page, parts }: Snippet): string => `${page}:${parts[0]!.line}`;

const codeOf = ({ parts }: Snippet): string => parts.map(({ code }) => code).join("\n");

/** The programs of a page, in its order. Throws for a word behind the language that means nothing. */
export function snippetsOf(page: string, markdown: string): Snippet[] {
  const snippets: Snippet[] = [];
  for (const { language, flags, code, line } of codeBlocksOf(markdown)) {
    if (!LANGUAGES.includes(language)) continue;
    const unknown = flags.find((flag) => !KNOWN_WORDS.includes(flag) && !FILE.test(flag));
    if (unknown !== undefined)
      throw new Error(`${page}:${line} \`${unknown}\` is none of ${KNOWN_WORDS.join(", ")}`);
    const before = flags.includes("continued") ? snippets.pop() : undefined;
    const parts = [...(before?.parts ?? []), { line, code }];
    snippets.push({ page, language, legacy: flags.includes("legacy"), parts });
  }
  return snippets;
}

/** What its lines say that they print, by `// prints ...` at their end; undefined where none says so. */
export function promisedOutput(snippet: Snippet): string[] | undefined {
  const lines = [...codeOf(snippet).matchAll(/\/\/ prints (.*)$/gm)].map(([, text]) => text!.trimEnd());
  return lines.length === 0 ? undefined : lines;
}

/** All snippets against the declarations in dist/. Returns what a reader would see go wrong, as `page:line message`. */
export function typeErrorsOf(snippets: readonly Snippet[]): string[] {
  const modern = snippets.filter(({ legacy }) => !legacy);
  const legacy = snippets.filter((snippet) => snippet.legacy);
  const sources = new SharedSources();
  return [
    ...errorsIn(modern, compilerOptions(), sources),
    ...(legacy.length === 0 ? [] : errorsIn(legacy, { ...compilerOptions(), ...LEGACY }, sources)),
  ];
}

const LEGACY: ts.CompilerOptions = {
  experimentalDecorators: true,
  emitDecoratorMetadata: true,
  erasableSyntaxOnly: false,
  verbatimModuleSyntax: false,
};

/** What TypeScript infers to be anything is no mistake where nothing can be annotated. */
const isImplicitAny = (code: number): boolean => code >= 7_000 && code < 8_000;

function errorsIn(
  snippets: readonly Snippet[],
  options: ts.CompilerOptions,
  sources: SharedSources,
): string[] {
  const byFile = new Map(snippets.map((snippet) => [fileOf(snippet), snippet]));
  const host = sources.host(options);
  const { getSourceFile, fileExists, readFile } = host;
  // Each is a module of its own, even without an import.
  const textOf = (path: string) => {
    const snippet = byFile.get(path);
    return snippet && `${codeOf(snippet)}\nexport {};\n`;
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
    const told = diagnostics.filter(({ code }) => snippet.language === "ts" || !isImplicitAny(code));
    return told.map(({ start = 0, messageText }) => {
      const line = lineOnPage(snippet, source.getLineAndCharacterOfPosition(start).line);
      return `${snippet.page}:${line} ${ts.flattenDiagnosticMessageText(messageText, "\n")}`;
    });
  });
}

function fileOf({ page, language, parts }: Snippet): string {
  const extension = language === "js" ? "mjs" : "ts";
  return join(
    SNIPPET_FOLDER,
    `${page.replace(/\.md$/, "").replaceAll("/", "--")}--${parts[0]!.line}.${extension}`,
  );
}

function lineOnPage({ parts }: Snippet, index: number): number {
  let left = index;
  for (const { line, code } of parts) {
    const count = code.split("\n").length;
    if (left < count) return line + left;
    left -= count;
  }
  return parts.at(-1)!.line;
}

/** The project's own strictness, with the entry points of package.json mapped to their declarations. */
function compilerOptions(): ts.CompilerOptions {
  const { config } = ts.readConfigFile(join(ROOT, "tsconfig.json"), ts.sys.readFile);
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, ROOT);
  return { ...options, noUnusedLocals: false, noUnusedParameters: false, paths: entryPoints() };
}

function entryPoints(): Record<string, string[]> {
  const { exports } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as {
    exports: Record<string, string | { types: string }>;
  };
  return Object.fromEntries(
    Object.entries(exports).flatMap(([subpath, target]) => {
      if (typeof target === "string") return [];
      return [[join("xcache", subpath), [join(ROOT, target.types)]]];
    }),
  );
}

/** A snippet as plain JavaScript for the installed Node. */
export function toJavaScript(snippet: Snippet): string {
  const options = { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 };
  const compilerOptions = snippet.legacy ? { ...options, ...LEGACY } : options;
  return ts.transpileModule(codeOf(snippet), { compilerOptions }).outputText;
}
