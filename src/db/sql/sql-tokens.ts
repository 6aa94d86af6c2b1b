// Splits SQL into tokens: enough to find statements, words, names and parentheses, and to notice what is ambiguous.

export interface Token {
  /**
   * `word`: unquoted, in lower case. `name`: quoted, as written. `text`: the content of a string literal. `value`: a
   * placeholder. `mark`: punctuation or an operator, one character each.
   */
  readonly kind: "word" | "name" | "text" | "number" | "value" | "mark";
  readonly text: string;
}

export type SqlDialect = "postgres" | "sqlite";

interface Rule {
  readonly kind: Token["kind"] | "space" | "comment" | "escaped" | "dollar" | "ambiguous";
  readonly pattern: RegExp;
}

const POSTGRES = { dialect: "postgres" } as const;
const SQLITE = { dialect: "sqlite" } as const;

/** Tried in order. */
const RULES: readonly (Rule & { readonly dialect?: SqlDialect })[] = [
  // Not \s: PostgreSQL treats every character beyond ASCII as a letter.
  { kind: "space", pattern: /[ \t\n\r\f\v]+/y },
  // A carriage return alone ends a comment in one database and not in the other.
  { kind: "ambiguous", pattern: /--[^\n\r]*\r(?!\n)/y },
  { kind: "space", pattern: /--[^\n]*/y },
  { kind: "comment", pattern: /\/\*/y },
  { kind: "escaped", pattern: /e'([^'\\]*(?:(?:''|\\[\s\S])[^'\\]*)*)'/iy, ...POSTGRES },
  // Unicode strings have their own escapes.
  { kind: "ambiguous", pattern: /u&['"]/iy },
  { kind: "text", pattern: /[bxn]'([^'\\]*(?:''[^'\\]*)*)'/iy },
  { kind: "word", pattern: /[A-Za-z_\u0080-\uffff][\w$\u0080-\uffff]*/y },
  {
    kind: "number",
    pattern: /(?:0[xob][\da-f_]+|\d[\d_]*(?:\.[\d_]*)?(?:e[-+]?\d+)?|\.\d+(?:e[-+]?\d+)?)/iy,
  },
  // Whether a backslash escapes the following quote depends on a setting.
  { kind: "ambiguous", pattern: /'[^'\\]*(?:(?:''|\\[^'])[^'\\]*)*\\'/y, ...POSTGRES },
  { kind: "text", pattern: /'([^']*(?:''[^']*)*)'/y },
  { kind: "name", pattern: /"([^"]*(?:""[^"]*)*)"/y },
  { kind: "name", pattern: /`([^`]*(?:``[^`]*)*)`/y, ...SQLITE },
  { kind: "name", pattern: /\[([^\]]*)\]/y, ...SQLITE },
  { kind: "value", pattern: /\$\d+|\?\d*/y },
  { kind: "value", pattern: /[:@$][A-Za-z_]\w*/y, ...SQLITE },
  { kind: "dollar", pattern: /\$(?:[A-Za-z_\u0080-\uffff][\w\u0080-\uffff]*)?\$/y, ...POSTGRES },
  { kind: "mark", pattern: /[-+*/<>=~!@#%^&|`?()[\],;:.]/y },
];

const RULES_OF: Record<SqlDialect, readonly Rule[]> = {
  postgres: RULES.filter((rule) => rule.dialect !== "sqlite"),
  sqlite: RULES.filter((rule) => rule.dialect !== "postgres"),
};

/** Old servers read `1from` as two tokens, newer ones refuse it. */
const STARTS_WORD = /[A-Za-z_\u0080-\uffff]/;

/** undefined: ambiguous or not understood. */
export function tokensOf(sql: string, dialect: SqlDialect): readonly Token[] | undefined {
  const tokens: Token[] = [];
  const rules = RULES_OF[dialect];
  for (let at = 0; at < sql.length; ) {
    const found = firstMatch(rules, sql, at);
    if (found === undefined) return undefined;
    const { kind, match } = found;
    let end = at + match[0].length;
    if (kind === "comment" || kind === "dollar") {
      const closed = kind === "comment" ? endOfComment(sql, at, dialect) : endOfText(sql, end, match[0]);
      if (closed === undefined) return undefined;
      if (kind === "dollar") tokens.push({ kind: "text", text: sql.slice(end, closed - match[0].length) });
      end = closed;
    } else if (kind === "word") tokens.push({ kind, text: match[0].toLowerCase() });
    else if (kind === "escaped") tokens.push({ kind: "text", text: match[1] ?? "" });
    else if (kind === "number" || kind === "value") {
      if (STARTS_WORD.test(sql[end] ?? "")) return undefined;
      tokens.push({ kind, text: match[0] });
    } else if (kind === "name") {
      const quote = match[0][0] ?? "";
      tokens.push({ kind, text: (match[1] ?? "").replaceAll(quote + quote, quote) });
    } else if (kind === "ambiguous") return undefined;
    else if (kind !== "space") tokens.push({ kind, text: match[1] ?? match[0] });
    at = end;
  }
  return tokens;
}

const PUNCTUATION: ReadonlySet<string> = new Set(["(", ")", ",", ";", "=", "*", "<", ">"]);

function firstMatch(
  rules: readonly Rule[],
  sql: string,
  at: number,
): { readonly kind: Rule["kind"]; readonly match: readonly [string, string?] } | undefined {
  // Most of a long list of values: no need to try the other rules.
  const character = sql[at] as string;
  if (PUNCTUATION.has(character)) return { kind: "mark", match: [character] };
  for (const { kind, pattern } of rules) {
    pattern.lastIndex = at;
    const match = pattern.exec(sql);
    if (match !== null) return { kind, match: match as unknown as [string, string?] };
  }
  return undefined;
}

/** PostgreSQL's comments nest, SQLite's do not. */
function endOfComment(sql: string, start: number, dialect: SqlDialect): number | undefined {
  const pattern = /\/\*|\*\//g;
  pattern.lastIndex = start + 2;
  for (let depth = 1; ; ) {
    const match = pattern.exec(sql);
    if (match === null) return undefined;
    if (match[0] === "*/") depth--;
    else if (dialect === "postgres") depth++;
    if (depth === 0) return pattern.lastIndex;
  }
}

function endOfText(sql: string, start: number, quote: string): number | undefined {
  const at = sql.indexOf(quote, start);
  return at < 0 ? undefined : at + quote.length;
}

/** The statements between semicolons, without empty ones. Those in the body of a trigger or function are part of it. */
export function statementsOf(tokens: readonly Token[]): readonly (readonly Token[])[] {
  const statements: Token[][] = [[]];
  let depth = 0;
  for (const token of tokens) {
    const statement = statements.at(-1) as Token[];
    if (token.kind === "mark" && token.text === ";" && depth === 0) {
      statements.push([]);
      continue;
    }
    if (token.kind === "word") depth = depthAfter(token.text, depth, statement);
    statement.push(token);
  }
  return statements.filter((statement) => statement.length > 0);
}

/** How many of BEGIN and CASE in the body of a routine are open after a word. */
function depthAfter(word: string, depth: number, before: readonly Token[]): number {
  if (word === "begin") return depth > 0 || isRoutine(before) ? depth + 1 : 0;
  if (depth === 0) return 0;
  if (word === "case") return depth + 1;
  return word === "end" ? depth - 1 : depth;
}

const BEFORE_ROUTINE: ReadonlySet<string> = new Set([
  ...["create", "or", "replace", "temp", "temporary", "constraint"],
]);

/** Whether a statement begins as CREATE TRIGGER, FUNCTION or PROCEDURE does. */
function isRoutine(statement: readonly Token[]): boolean {
  if (!isWord(statement[0], "create")) return false;
  const kind = statement.find(({ text }) => !BEFORE_ROUTINE.has(text))?.text ?? "";
  return ["trigger", "function", "procedure"].includes(kind);
}

export function isWord(token: Token | undefined, text: string): boolean {
  return token?.kind === "word" && token.text === text;
}

export function isMark(token: Token | undefined, text: string): boolean {
  return token?.kind === "mark" && token.text === text;
}
