// What a statement in a binary log means for a feed: whether it begins or ends a transaction, or changes something.

export type StatementKind =
  /** `branch`: the name of a distributed transaction. */
  | { readonly kind: "begin" | "commit" | "rollback"; readonly branch?: string | undefined }
  | { readonly kind: "schema" | "change" | "none" };

const COMMENTS = /^(?:\s+|\/\*[^!M][\s\S]*?\*\/|--[^\n]*\n|#[^\n]*\n)+/;
/** `SET STATEMENT` carries out another statement. */
const NO_CHANGE =
  /^(?:savepoint|release|rollback\s+(?:work\s+)?to|xa\s+end|set\b(?![\s\S]*\bstatement\b)|flush|analyze|optimize|check|grant|revoke)\b/i;
const ROWS = /^(?:insert|update|delete|replace|load|call|with|do|execute|select)\b/i;

export function statementKind(text: string): StatementKind {
  const bare = text.replace(COMMENTS, "").trimEnd();
  const branch = /^xa\s+(start|begin|commit|rollback)\s+([\s\S]+?)(?:\s+one\s+phase)?$/i.exec(bare);
  if (branch !== null) {
    const [, word = "", name = ""] = branch;
    const kind = { start: "begin", begin: "begin", commit: "commit", rollback: "rollback" }[
      word.toLowerCase()
    ];
    return { kind: kind as "begin", branch: name.replaceAll(/\s/g, "").toLowerCase() };
  }
  if (NO_CHANGE.test(bare)) return { kind: "none" };
  if (/^(?:begin|start\s+transaction)\b/i.test(bare)) return { kind: "begin" };
  if (/^commit\b/i.test(bare)) return { kind: "commit" };
  if (/^rollback\b/i.test(bare)) return { kind: "rollback" };
  return { kind: ROWS.test(bare) ? "change" : "schema" };
}
