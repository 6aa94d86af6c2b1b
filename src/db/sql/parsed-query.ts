// What a SELECT, INSERT, UPDATE, DELETE or MERGE does, by its parse tree.
import { ANYTHING, type Effects, offenceOf, type Statement } from "./analysis.ts";
import { type Fields, visitFields } from "./parse-tree.ts";
import { type Call, type CallKind, callKind, mayLiteralDenoteNow } from "./sql-functions.ts";

/** Names of common table expressions that hide tables. */
type Scope = ReadonlySet<string>;

/** Deeper trees are left: walking them could exhaust the stack. */
const DEEPEST = 400;

const CHANGES: ReadonlySet<string> = new Set(["InsertStmt", "UpdateStmt", "DeleteStmt", "MergeStmt"]);

export const isQuery = (type: string): boolean => type === "SelectStmt" || CHANGES.has(type);

/** A node or field that is not known makes it a write of everything. */
export function parsedQuery(type: string, fields: Fields): Statement {
  const facts = new Facts();
  const unknown = facts.visit(type, fields, new Set());
  const { reads, writes, kinds, offence } = facts;
  if (unknown !== undefined) {
    return { ...ANYTHING, tables: [...writes], reason: `its parse tree has ${unknown}, which is not known` };
  }
  const calls = facts.calls.size === 0 ? {} : { calls: [...facts.calls.values()] };
  const locks = kinds.has("hold") ? "session" : kinds.has("lock") ? "transaction" : undefined;
  const effects: Effects = { anything: false, locks, settings: kinds.has("setting") };
  if (writes.size > 0) {
    const hasWith = !CHANGES.has(type) || fields.withClause !== undefined;
    const reason = hasWith ? `it changes ${[...writes].join(", ")}` : undefined;
    return { kind: "write", tables: [...writes], effects, ...calls, reason };
  }
  return kinds.size > 0 || reads.size === 0
    ? { kind: "harmless", effects, ...calls, reason: offence }
    : { kind: "read", tables: [...reads], ...calls };
}

class Facts {
  readonly reads = new Set<string>();
  readonly writes = new Set<string>();
  readonly calls = new Map<string, Call>();
  readonly kinds = new Set<CallKind>();
  /** In words, the first that was found, besides calls that the catalogue decides about. */
  offence: string | undefined;

  /** Returns the name of a node or field that is not known, if there is one. */
  visit(type: string, fields: Fields, scope: Scope, depth = 0): string | undefined {
    if (depth > DEEPEST) return "depth";
    const inner = (names: Scope) => (each: string, of: Fields) => this.visit(each, of, names, depth + 1);
    switch (type) {
      case "RangeVar":
        if (fields.schemaname !== undefined || !scope.has(fields.relname as string))
          this.reads.add(fields.relname as string);
        break;
      case "FuncCall":
        this.#call(namesOf(fields.funcname));
        break;
      case "Text":
        if (mayLiteralDenoteNow(String(fields.sval ?? ""))) this.#note("volatile", sameFor(fields.sval));
        break;
      case "SQLValueFunction":
        this.#note(
          "volatile",
          sameFor(
            String(fields.op)
              .toLowerCase()
              .replace(/^svfop_|_n$/g, ""),
          ),
        );
        break;
      case "RangeTableSample":
        this.#note("volatile", "it reads a sample of a table");
        break;
      case "LockingClause":
        this.#note("lock", "it locks rows");
        // It names aliases, not tables.
        return undefined;
    }
    if (!isQuery(type)) return visitFields(type, fields, inner(scope));
    const { withClause, relation, ...rest } = fields as { withClause?: Fields; relation?: Fields };
    if (relation !== undefined) {
      this.writes.add(relation.relname as string);
      const unknown = visitFields("RangeVar", relation, inner(scope));
      if (unknown !== undefined) return unknown;
    }
    const names = new Set(scope);
    const unknown = withClause && this.#commonTables(withClause, names, depth);
    return unknown ?? visitFields(type, rest, inner(names));
  }

  /** Adds their names to `names`: each is known to those after it, with RECURSIVE to all. */
  #commonTables(withClause: Fields, names: Set<string>, depth: number): string | undefined {
    const { ctes, ...rest } = withClause;
    const tables = (ctes as readonly { readonly CommonTableExpr?: Fields }[]).map(
      (each) => each.CommonTableExpr,
    );
    if (withClause.recursive === true) for (const table of tables) names.add(table?.ctename as string);
    for (const table of tables) {
      if (table === undefined) return "WithClause.ctes";
      const scope = new Set(names);
      const unknown = this.visit("CommonTableExpr", table, scope, depth + 1);
      if (unknown !== undefined) return unknown;
      names.add(table.ctename as string);
    }
    return visitFields("WithClause", rest, () => undefined);
  }

  #call(names: readonly string[]): void {
    const name = names.at(-1) ?? "";
    const kind = callKind(name, names.at(-2), "postgres");
    // A keyword is called only if it is quoted.
    const known = kind === "none" ? "unknown" : kind;
    if (known === "plain" || known === "volatile" || known === "unknown") {
      if (this.calls.get(name)?.kind !== "unknown") this.calls.set(name, { name, kind: known });
    } else this.#note(known, offenceOf({ name, kind: known }));
  }

  #note(kind: CallKind, offence: string | undefined): void {
    this.kinds.add(kind);
    this.offence ??= offence;
  }
}

const sameFor = (word: unknown): string => `"${String(word)}" is not the same for every reader`;

/** The texts of a list of String nodes. */
function namesOf(list: unknown): readonly string[] {
  return ((list ?? []) as readonly { readonly String?: { readonly sval?: string } }[]).map(
    (node) => node.String?.sval ?? "",
  );
}
