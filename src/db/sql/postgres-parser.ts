// PostgreSQL's own parser, from the optional package libpg-query: once it is loaded, it decides in place of the tokenizer.
import { optionalPackage } from "../../core/peer-package.ts";
import { installedVersion, isOlder, OLDEST_SUPPORTED } from "../../core/peer-versions.ts";
import type { ParsedText } from "./parsed-statement.ts";

const PACKAGE = "libpg-query";

/** Longer texts would hold the event loop: 10,000 characters take some milliseconds, once per text. */
const LONGEST_PARSED = 10_000;

/**
 * With the settings of some sessions a backslash escapes the quote, and the literal ends elsewhere. The parser does not look
 * beyond a zero byte, and refuses an empty text.
 */
const isAmbiguous = (sql: string): boolean => /\\'|\0/.test(sql) || sql.trim() === "";

interface Library {
  loadModule(): Promise<void>;
  parseSync(text: string): ParsedText;
}

interface Parser {
  parse(text: string): ParsedText;
  readonly classify: typeof import("./parsed-statement.ts")["parsedStatements"];
}

let parser: Parser | undefined;
let loading: Promise<void> | undefined;

let generation = 0;

/** Changes when the parser is loaded or given up: what was concluded before no longer counts. */
export const parserGeneration = (): number => generation;

/** Loads the package if it is installed. Never rejects: without it the tokenizer decides. */
export function loadParser(): Promise<void> {
  loading ??= load().then(use, () => {});
  return loading;
}

async function load(): Promise<Parser | undefined> {
  const found = installedVersion(PACKAGE);
  if (found === undefined || isOlder(found, OLDEST_SUPPORTED[PACKAGE] ?? "")) return undefined;
  const library = optionalPackage(PACKAGE) as Library | undefined;
  if (library === undefined) return undefined;
  const [{ parsedStatements: classify }] = await Promise.all([
    import("./parsed-statement.ts"),
    library.loadModule(),
  ]);
  return { parse: library.parseSync, classify };
}

function use(next: Parser | undefined): void {
  parser = next;
  generation++;
}

export type Parsed = ReturnType<Parser["classify"]>;

/** "invalid": the parser does not know such statements. undefined: it is not loaded, or the text is too long for it. */
export function parsed(sql: string): Parsed | "invalid" | undefined {
  if (parser === undefined || sql.length > LONGEST_PARSED || isAmbiguous(sql)) return undefined;
  const { parse, classify } = parser;
  try {
    return classify(parse(sql));
  } catch (error) {
    // After any error but one about the text, its memory may be in disorder, or its trees have another form.
    if ((error as Error).name !== "SqlError") use(undefined);
    return "invalid";
  }
}
