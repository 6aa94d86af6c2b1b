// YAML text to a document that is safe to read: bounded in size, depth and aliases. Messages never quote the text.
import type { CST, Document, LineCounter, YAMLError } from "yaml";
import { ConfigError, describeArrival } from "../core/errors.ts";
import { redactUrl } from "../core/redact.ts";

export type Yaml = typeof import("yaml");

export interface ParsedYaml {
  readonly document: Document;
  readonly lines: LineCounter;
}

/**
 * Collections within each other. The parser recurses and relies on catching the stack's overflow, which can also end the
 * process (seen: V8 gives up when it compiles a regular expression there), so depth is measured before it starts.
 */
const DEEPEST = 64;

/** Aliases in one file, and what they stand for: nested ones multiply, so a few lines could fill the memory. */
export const MOST_ALIASES = 100;

/** In our words, since the parser's own quote the text, and with it a password. */
const SYNTAX: Readonly<Partial<Record<YAMLError["code"], string>>> = {
  BAD_ALIAS: "an anchor or alias with a bad name",
  BAD_DQ_ESCAPE: "an unknown escape in a double-quoted string",
  BAD_INDENT: "bad indentation",
  BAD_SCALAR_START: "a value that must be quoted because of its first character",
  BLOCK_AS_IMPLICIT_KEY: "a mapping or list where a key or value is expected (perhaps an unquoted colon)",
  MISSING_CHAR: "a missing quote, comma, colon or space",
  MULTILINE_IMPLICIT_KEY: "a key that goes over several lines (perhaps a missing colon)",
  MULTIPLE_DOCS: "a second document",
  NON_STRING_KEY: "a key that is not plain text",
  TAB_AS_INDENT: "a tab in the indentation",
  TAG_RESOLVE_FAILED: "a tag that is not known or does not fit",
  UNEXPECTED_TOKEN: "something that cannot stand here",
};

type Fail = (offset: number, what: string) => never;

/** Throws ConfigError with CONFIG_UNREADABLE, the line and the column; `path` is how messages name the text. */
export function parseYaml(yaml: Yaml, path: string, source: string): ParsedYaml {
  const lines = new yaml.LineCounter();
  const fail: Fail = (offset, what) => {
    const { line, col } = lines.linePos(offset);
    throw new ConfigError("CONFIG_UNREADABLE", `${path}:${line}:${col}: not valid YAML: ${what}`);
  };
  refuseDepth([...new yaml.Parser(lines.addNewLine).parse(source)], fail);
  const document = yaml.parseDocument(source, {
    prettyErrors: false,
    stringKeys: true,
    // The parser compares each key with all before it; see refuseDuplicates.
    uniqueKeys: false,
    // `Infinity`, as code and environment spell it, besides YAML's own `.inf`.
    customTags: (tags) => [
      {
        tag: "tag:yaml.org,2002:float",
        default: true,
        test: /^Infinity$/,
        resolve: () => Number.POSITIVE_INFINITY,
      },
      ...tags,
    ],
  });
  const [problem] = [...document.errors, ...document.warnings];
  if (problem !== undefined) fail(problem.pos[0], SYNTAX[problem.code] ?? problem.code);
  refuseDuplicates(yaml, document, fail);
  refuseAliases(yaml, document, fail);
  return { document, lines };
}

/** Walks with a list of its own, for the tokens may be nested beyond any stack. */
function refuseDepth(tokens: readonly CST.Token[], fail: Fail): void {
  const open: { token: CST.Token | null | undefined; depth: number }[] = tokens.map((token) => ({
    token,
    depth: 0,
  }));
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { token, depth } = next;
    if (!token) continue;
    if (depth > DEEPEST) fail(token.offset, "too deep a nesting");
    if (token.type === "document") open.push({ token: token.value, depth });
    if (!("items" in token)) continue;
    for (const item of token.items) {
      open.push({ token: item.key, depth: depth + 1 }, { token: item.value, depth: depth + 1 });
    }
  }
}

function refuseDuplicates(yaml: Yaml, document: Document, fail: Fail): void {
  yaml.visit(document, {
    Map(_, map) {
      const seen = new Set<string>();
      for (const { key } of map.items) {
        const name = String(key);
        if (seen.has(name)) {
          const start = yaml.isNode(key) ? key.range?.[0] : undefined;
          fail(start ?? 0, `the key ${describeArrival(redactUrl(name))} stands in this mapping already`);
        }
        seen.add(name);
      }
    },
  });
}

function refuseAliases(yaml: Yaml, document: Document, fail: Fail): void {
  let aliases = 0;
  yaml.visit(document, {
    Alias(_, alias) {
      const start = alias.range?.[0] ?? 0;
      aliases += 1;
      if (aliases > MOST_ALIASES) fail(start, "too many aliases");
      if (alias.resolve(document) === undefined) fail(start, "an alias without its anchor");
    },
  });
}
