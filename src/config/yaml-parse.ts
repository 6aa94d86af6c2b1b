// Parses YAML within limits on depth and aliases. Error messages never quote the text, which may hold secrets.
import type { CST, Document, LineCounter, YAMLError } from "yaml";
import { ConfigError, describeArrival } from "../core/errors.ts";
import { redactUrl } from "../core/redact.ts";

export type Yaml = typeof import("yaml");

export interface ParsedYaml {
  readonly document: Document;
  readonly lines: LineCounter;
}

/**
 * Nested collections. The parser recurses and relies on catching the stack overflow, which can also kill the process (V8
 * aborts if it happens to compile a regular expression there), so the depth is measured first.
 */
const MAX_DEPTH = 64;

/** Aliases per file, and nodes they may expand to: nested aliases multiply, so a few lines could exhaust memory. */
export const MAX_ALIASES = 100;

/** Our own messages, since the parser's quote the text and could leak a password. */
const SYNTAX: Readonly<Partial<Record<YAMLError["code"], string>>> = {
  BAD_ALIAS: "an anchor or alias with a bad name",
  BAD_DQ_ESCAPE: "an unknown escape in a double-quoted string",
  BAD_INDENT: "bad indentation",
  BAD_SCALAR_START: "a value that must be quoted because of its first character",
  BLOCK_AS_IMPLICIT_KEY: "a mapping or list where a key or value is expected (perhaps an unquoted colon)",
  MISSING_CHAR: "a missing quote, comma, colon or space",
  MULTILINE_IMPLICIT_KEY: "a key that spans several lines (perhaps a missing colon)",
  MULTIPLE_DOCS: "a second document",
  NON_STRING_KEY: "a key that is not plain text",
  TAB_AS_INDENT: "a tab in the indentation",
  TAG_RESOLVE_FAILED: "an unknown or mismatched tag",
  UNEXPECTED_TOKEN: "an unexpected token",
};

type Fail = (offset: number, what: string) => never;

/** Throws ConfigError with CONFIG_UNREADABLE, the line and the column; `path` is how messages name the text. */
export function parseYaml(yaml: Yaml, path: string, source: string): ParsedYaml {
  const lines = new yaml.LineCounter();
  const fail: Fail = (offset, what) => {
    const { line, col } = lines.linePos(offset);
    throw new ConfigError("CONFIG_UNREADABLE", `${path}:${line}:${col}: not valid YAML: ${what}`);
  };
  rejectDepth([...new yaml.Parser(lines.addNewLine).parse(source)], fail);
  const document = yaml.parseDocument(source, {
    prettyErrors: false,
    stringKeys: true,
    // The parser's own check is quadratic; see rejectDuplicates.
    uniqueKeys: false,
    // Accept `Infinity`, as in code and environment, besides YAML's own `.inf`.
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
  rejectDuplicates(yaml, document, fail);
  rejectAliases(yaml, document, fail);
  return { document, lines };
}

/** Iterative, since the tokens may be nested deeper than the call stack. */
function rejectDepth(tokens: readonly CST.Token[], fail: Fail): void {
  const open: { token: CST.Token | null | undefined; depth: number }[] = tokens.map((token) => ({
    token,
    depth: 0,
  }));
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { token, depth } = next;
    if (!token) continue;
    if (depth > MAX_DEPTH) fail(token.offset, "nesting too deep");
    if (token.type === "document") open.push({ token: token.value, depth });
    if (!("items" in token)) continue;
    for (const item of token.items) {
      open.push({ token: item.key, depth: depth + 1 }, { token: item.value, depth: depth + 1 });
    }
  }
}

function rejectDuplicates(yaml: Yaml, document: Document, fail: Fail): void {
  yaml.visit(document, {
    Map(_, map) {
      const seen = new Set<string>();
      for (const { key } of map.items) {
        const name = String(key);
        if (seen.has(name)) {
          const start = yaml.isNode(key) ? key.range?.[0] : undefined;
          fail(start ?? 0, `the key ${describeArrival(redactUrl(name))} is already in this mapping`);
        }
        seen.add(name);
      }
    },
  });
}

function rejectAliases(yaml: Yaml, document: Document, fail: Fail): void {
  let aliases = 0;
  yaml.visit(document, {
    Alias(_, alias) {
      const start = alias.range?.[0] ?? 0;
      aliases += 1;
      if (aliases > MAX_ALIASES) fail(start, "too many aliases");
      if (alias.resolve(document) === undefined) fail(start, "an alias without an anchor");
    },
  });
}
