// Splits SQL into tokens: enough to find statements, words, names and parentheses, and to notice what is ambiguous.

export interface Token {
  /**
   * `word`: unquoted, in lower case. `name`: quoted, as written. `text`: the content of a string literal. `value`: a
   * placeholder. `mark`: punctuation or an operator, one character each.
   */
  readonly kind: "word" | "name" | "text" | "number" | "value" | "mark";
  readonly text: string;
}

export type SqlDialect = "postgres" | "sqlite" | "mysql";

interface Rule {
  readonly kind: Token["kind"] | "space" | "comment" | "quoted" | "dollar" | "ambiguous";
  /** How it begins: most characters leave one rule to try. */
  readonly first: RegExp;
  readonly pattern: RegExp;
}

const POSTGRES = { dialect: "postgres" } as const;
const SQLITE = { dialect: "sqlite" } as const;
const MYSQL = { dialect: "mysql" } as const;

/** Tried in order. A pattern must not repeat a group without bound: a long literal would exhaust the stack. */
const RULES: readonly (Rule & { readonly dialect?: SqlDialect })[] = [
  // Not \s: PostgreSQL treats every character beyond ASCII as a letter.
  { kind: "space", first: /[ \t\n\r\f\v]/, pattern: /[ \t\n\r\f\v]+/y },
  // A carriage return alone ends a comment in one database and not in the other.
  { kind: "ambiguous", first: /-/, pattern: /--[^\n\r]*\r(?!\n)/y },
  // In MySQL two minus signs begin a comment only in front of a space.
  { kind: "space", first: /-/, pattern: /--(?:[ \t\n\f\v][^\n]*|$)/y, ...MYSQL },
  { kind: "space", first: /#/, pattern: /#[^\n]*/y, ...MYSQL },
  { kind: "mark", first: /-/, pattern: /-/y, ...MYSQL },
  { kind: "space", first: /-/, pattern: /--[^\n]*/y },
  // What is in them is executed, by some versions.
  { kind: "ambiguous", first: /\//, pattern: /\/\*M?!/y, ...MYSQL },
  { kind: "comment", first: /\//, pattern: /\/\*/y },
  { kind: "quoted", first: /e/i, pattern: /e'/iy, ...POSTGRES },
  // Unicode strings have their own escapes.
  { kind: "ambiguous", first: /u/i, pattern: /u&['"]/iy },
  { kind: "text", first: /[bxn]/i, pattern: /[bxn]'([^'\\]*)'(?!')/iy },
  { kind: "ambiguous", first: /[bxn]/i, pattern: /[bxn]'/iy },
  { kind: "word", first: /[A-Za-z_\u0080-\uffff]/, pattern: /[A-Za-z_\u0080-\uffff][\w$\u0080-\uffff]*/y },
  {
    kind: "number",
    first: /[\d.]/,
    pattern: /(?:0[xob][\da-f_]+|\d[\d_]*(?:\.[\d_]*)?(?:e[-+]?\d+)?|\.\d+(?:e[-+]?\d+)?)/iy,
  },
  { kind: "quoted", first: /['"]/, pattern: /['"]/y },
  { kind: "quoted", first: /[`[]/, pattern: /[`[]/y, ...SQLITE },
  { kind: "quoted", first: /`/, pattern: /`/y, ...MYSQL },
  { kind: "word", first: /\$/, pattern: /\$[\w$\u0080-\uffff]*/y, ...MYSQL },
  { kind: "value", first: /[$?]/, pattern: /\$\d+|\?\d*/y },
  { kind: "value", first: /[:@$]/, pattern: /[:@$][A-Za-z_]\w*/y, ...SQLITE },
  { kind: "dollar", first: /\$/, pattern: /\$(?:[A-Za-z_\u0080-\uffff][\w\u0080-\uffff]*)?\$/y, ...POSTGRES },
  { kind: "mark", first: /[-+*/<>=~!@#%^&|`?()[\],;:.]/, pattern: /[-+*/<>=~!@#%^&|`?()[\],;:.]/y },
];

const ASCII = 128;

/** The rules for each character of ASCII, and last those for all others. */
function rulesOf(dialect: SqlDialect): readonly (readonly Rule[])[] {
  const rules = RULES.filter((rule) => rule.dialect === undefined || rule.dialect === dialect);
  return Array.from({ length: ASCII + 1 }, (_, code) =>
    rules.filter(({ first }) => first.test(String.fromCharCode(code))),
  );
}

const RULES_OF: Record<SqlDialect, ReturnType<typeof rulesOf>> = {
  postgres: rulesOf("postgres"),
  sqlite: rulesOf("sqlite"),
  mysql: rulesOf("mysql"),
};

/** Old servers read `1from` as two tokens, newer ones refuse it. */
const STARTS_WORD = /[A-Za-z_\u0080-\uffff]/;

/** Longer texts would hold the event loop. */
const MOST_TOKENS = 200_000;

/** undefined: ambiguous, not understood or too long. */
export function tokensOf(sql: string, dialect: SqlDialect): readonly Token[] | undefined {
  const tokens: Token[] = [];
  for (let at = 0; at < sql.length; ) {
    const found = firstMatch(RULES_OF[dialect], sql, at);
    if (found === undefined || tokens.length > MOST_TOKENS) return undefined;
    const { kind, match } = found;
    let end = at + match[0].length;
    if (kind === "comment" || kind === "dollar") {
      const closed = kind === "comment" ? endOfComment(sql, at, dialect) : endOfText(sql, end, match[0]);
      if (closed === undefined) return undefined;
      if (kind === "dollar") tokens.push({ kind: "text", text: sql.slice(end, closed - match[0].length) });
      end = closed;
    } else if (kind === "quoted") {
      const closed = endOfQuoted(sql, end, match[0], dialect);
      if (closed === undefined) return undefined;
      tokens.push(quotedToken(sql.slice(end, closed - 1), match[0], dialect));
      end = closed;
    } else if (kind === "word") {
      tokens.push({ kind, text: foldedWord(match[0], dialect) });
    } else if (kind === "number" || kind === "value") {
      if (STARTS_WORD.test(sql[end] ?? "")) return undefined;
      tokens.push({ kind, text: match[0] });
    } else if (kind === "ambiguous") return undefined;
    else if (kind !== "space") tokens.push({ kind, text: match[1] ?? match[0] });
    at = end;
  }
  return tokens;
}

function firstMatch(
  rules: readonly (readonly Rule[])[],
  sql: string,
  at: number,
): { readonly kind: Rule["kind"]; readonly match: readonly [string, string?] } | undefined {
  for (const { kind, pattern } of rules[Math.min(sql.charCodeAt(at), ASCII)] ?? []) {
    pattern.lastIndex = at;
    const match = pattern.exec(sql);
    if (match !== null) return { kind, match: match as unknown as [string, string?] };
  }
  return undefined;
}

const CLOSING: Readonly<Record<string, string>> = { "[": "]", "e'": "'", "E'": "'" };

function quotedToken(content: string, opening: string, dialect: SqlDialect): Token {
  const isText = opening.endsWith("'") || (dialect === "mysql" && opening === '"');
  if (isText) return { kind: "text", text: content };
  const name = opening === "[" ? content : content.replaceAll(opening + opening, opening);
  return { kind: "name", text: dialect === "postgres" ? cutName(name) : name };
}

/** PostgreSQL leaves letters beyond ASCII as they are. */
function foldedWord(word: string, dialect: SqlDialect): string {
  if (dialect !== "postgres") return word.toLowerCase();
  return cutName(word.replace(/[A-Z]+/g, (letters) => letters.toLowerCase()));
}

/** PostgreSQL takes the first 63 bytes of a name, without part of a character. */
const LONGEST_NAME = 63;

function cutName(name: string): string {
  // No character takes more than three bytes for each of its units.
  if (name.length * 3 <= LONGEST_NAME) return name;
  const bytes = Buffer.from(name);
  let end = LONGEST_NAME;
  if (bytes.length <= end) return name;
  while (((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
  return bytes.toString("utf8", 0, end);
}

/** The index after a literal or a quoted name whose content begins at `start`. undefined: not closed, or ambiguous. */
function endOfQuoted(sql: string, start: number, opening: string, dialect: SqlDialect): number | undefined {
  const closing = CLOSING[opening] ?? opening;
  // Whether a backslash escapes the following quote depends on a setting, as does whether MySQL takes "a" for a name.
  const isUnsure = dialect === "mysql" ? opening === '"' : opening === "'" && dialect === "postgres";
  const isEscaped = opening.length === 2 || (dialect === "mysql" && opening === "'");
  const pattern = isUnsure || isEscaped ? (opening === '"' ? /["\\]/g : /['\\]/g) : undefined;
  for (let at = start; ; ) {
    if (pattern !== undefined) pattern.lastIndex = at;
    const found = pattern === undefined ? sql.indexOf(closing, at) : (pattern.exec(sql)?.index ?? -1);
    if (found < 0) return undefined;
    const next = sql[found + 1];
    if (sql[found] === "\\") {
      if (isUnsure && next === closing) return undefined;
      at = found + 2;
    } else if (next === closing && closing !== "]") at = found + 2;
    else return found + 1;
  }
}

/** PostgreSQL's comments nest, the others' do not. */
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
