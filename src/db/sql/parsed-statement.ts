// Classifies the statements of PostgreSQL by their parse tree. What is not known may do anything, as in statement.ts.
import { ANYTHING, HARMLESS, NO_EFFECTS, type Statement } from "./analysis.ts";
import type { Fields } from "./parse-tree.ts";
import { isQuery, parsedQuery } from "./parsed-query.ts";

/** What libpg-query returns for a text. */
export interface ParsedText {
  readonly stmts?: readonly { readonly stmt?: Readonly<Record<string, Fields>> }[];
}

export function parsedStatements({ stmts = [] }: ParsedText): readonly Statement[] {
  return stmts.map(({ stmt = {} }) => {
    const [type = "", fields = {}] = Object.entries(stmt)[0] ?? [];
    return isQuery(type) ? parsedQuery(type, fields) : (UTILITIES[type]?.(fields) ?? ANYTHING);
  });
}

const harmless = (): Statement => HARMLESS;
const setting = (): Statement => ({ kind: "harmless", effects: { ...NO_EFFECTS, settings: true } });

const UTILITIES: Readonly<Record<string, (fields: Fields) => Statement>> = {
  TransactionStmt: transaction,
  VariableSetStmt: setting,
  DiscardStmt: setting,
  LockStmt: () => ({ kind: "harmless", effects: { ...NO_EFFECTS, locks: "transaction" } }),
  ExplainStmt: ({ options }) =>
    definitions(options).some(({ defname }) => /^analy[sz]e$/.test(String(defname))) ? ANYTHING : HARMLESS,
  VariableShowStmt: harmless,
  ListenStmt: harmless,
  UnlistenStmt: harmless,
  NotifyStmt: harmless,
  FetchStmt: harmless,
  ClosePortalStmt: harmless,
  DeallocateStmt: harmless,
  PrepareStmt: harmless,
  CopyStmt: copy,
  TruncateStmt: ({ relations }) => ({
    ...ANYTHING,
    tables: (relations as readonly { readonly RangeVar?: Fields }[]).map(({ RangeVar }) => nameOf(RangeVar)),
  }),
  RefreshMatViewStmt: ({ relation }) => ({ ...ANYTHING, tables: [nameOf(relation)] }),
};

function transaction({ kind, options, savepoint_name }: Fields): Statement {
  // As in statement.ts, the later of two savepoints that differ in case is taken.
  const name = String(savepoint_name ?? "").toLowerCase();
  switch (kind) {
    case "TRANS_STMT_BEGIN":
    case "TRANS_STMT_START":
      return { kind: "begin", isPlain: definitions(options).every(isPlainOption) };
    case "TRANS_STMT_COMMIT":
      return { kind: "commit" };
    // PREPARE TRANSACTION ends it here without committing; COMMIT PREPARED counts as writing anything.
    case "TRANS_STMT_ROLLBACK":
    case "TRANS_STMT_PREPARE":
      return { kind: "rollback" };
    case "TRANS_STMT_SAVEPOINT":
      return { kind: "savepoint", name };
    case "TRANS_STMT_ROLLBACK_TO":
      return { kind: "rollback to", name };
    case "TRANS_STMT_RELEASE":
      return { kind: "release", name };
    case "TRANS_STMT_ROLLBACK_PREPARED":
      return HARMLESS;
    default:
      return ANYTHING;
  }
}

const PLAIN_OPTIONS: ReadonlySet<unknown> = new Set(["transaction_read_only", "transaction_deferrable"]);

function isPlainOption({ defname, arg }: Fields): boolean {
  if (defname !== "transaction_isolation") return PLAIN_OPTIONS.has(defname);
  const { A_Const } = arg as { readonly A_Const?: { readonly sval?: { readonly sval?: string } } };
  return A_Const?.sval?.sval === "read committed";
}

/** With a condition on the rows, FROM is like an UPDATE with one. A query may change tables too. */
function copy({ relation, is_from, whereClause }: Fields): Statement {
  if (relation === undefined) return ANYTHING;
  return is_from === true
    ? parsedQuery("UpdateStmt", { relation, ...(whereClause !== undefined && { whereClause }) })
    : HARMLESS;
}

const nameOf = (relation: unknown): string => String((relation as Fields | undefined)?.relname ?? "");

const definitions = (options: unknown): readonly Fields[] =>
  ((options ?? []) as readonly { readonly DefElem?: Fields }[]).map(({ DefElem = {} }) => DefElem);
