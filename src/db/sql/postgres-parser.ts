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

export type Parsed = ReturnType<Parser["classify"]>;

export class PostgresParser {
  /** Changes when the parser is loaded or given up: what was concluded before no longer counts. */
  generation = 0;
  readonly #find: () => unknown;
  #parser: Parser | undefined;
  #loading: Promise<void> | undefined;

  /** `find` returns the package, or undefined if it is not installed. */
  constructor(find: () => unknown) {
    this.#find = find;
  }

  /** Never rejects: without the package the tokenizer decides. */
  load(): Promise<void> {
    this.#loading ??= this.#load().catch(() => {});
    return this.#loading;
  }

  /** "invalid": the parser does not know such statements. undefined: it is not loaded, or the text is too long for it. */
  parsed(sql: string): Parsed | "invalid" | undefined {
    if (this.#parser === undefined || sql.length > LONGEST_PARSED || isAmbiguous(sql)) return undefined;
    const { parse, classify } = this.#parser;
    try {
      return classify(parse(sql));
    } catch (error) {
      // After any error but one about the text, its memory may be in disorder, or its trees have another form.
      if ((error as Error).name !== "SqlError") this.#use(undefined);
      return "invalid";
    }
  }

  async #load(): Promise<void> {
    const library = this.#find() as Library | undefined;
    if (library === undefined) return;
    const [{ parsedStatements: classify }] = await Promise.all([
      import("./parsed-statement.ts"),
      library.loadModule(),
    ]);
    this.#use({ parse: library.parseSync, classify });
  }

  #use(parser: Parser | undefined): void {
    this.#parser = parser;
    this.generation++;
  }
}

/** The package, unless it is older than supported. `version`: the one that is installed. */
export function installedParser(version = installedVersion(PACKAGE)): unknown {
  if (version === undefined || isOlder(version, OLDEST_SUPPORTED[PACKAGE] ?? "")) return undefined;
  return optionalPackage(PACKAGE);
}

export const postgresParser = new PostgresParser(() => installedParser());
