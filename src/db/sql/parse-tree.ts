// The closed world of PostgreSQL's parse tree: the nodes and fields whose meaning for a cache is known.

/** A node's fields, as libpg-query returns them. */
export type Fields = Readonly<Record<string, unknown>>;

/**
 * For each node its fields. `field:Type` holds the fields of that node directly; any other field holds values, nodes by the
 * name of their type, or lists of them. What is not here may mean anything.
 */
const NODES = `
  SelectStmt distinctClause targetList fromClause whereClause groupClause groupDistinct havingClause windowClause
    valuesLists sortClause limitOffset limitCount limitOption lockingClause withClause:WithClause op all
    larg:SelectStmt rarg:SelectStmt
  InsertStmt relation:RangeVar cols selectStmt onConflictClause:OnConflictClause returningList
    returningClause:ReturningClause withClause:WithClause override
  UpdateStmt relation:RangeVar targetList whereClause fromClause returningList returningClause:ReturningClause
    withClause:WithClause
  DeleteStmt relation:RangeVar usingClause whereClause returningList returningClause:ReturningClause
    withClause:WithClause
  MergeStmt relation:RangeVar sourceRelation joinCondition mergeWhenClauses returningList
    returningClause:ReturningClause withClause:WithClause
  MergeWhenClause matchKind matched commandType override condition targetList values
  OnConflictClause action infer:InferClause targetList whereClause
  InferClause indexElems whereClause conname
  IndexElem name expr collation opclass ordering nulls_ordering
  ReturningClause options exprs
  ReturningOption option value
  WithClause ctes recursive
  CommonTableExpr ctename aliascolnames ctematerialized ctequery
  LockingClause lockedRels strength waitPolicy
  ResTarget name indirection val
  RangeVar catalogname schemaname relname inh relpersistence alias:Alias
  RangeSubselect lateral subquery alias:Alias
  RangeFunction lateral ordinality is_rowsfrom functions alias:Alias coldeflist
  RangeTableSample relation method args repeatable
  JoinExpr jointype isNatural larg rarg usingClause join_using_alias:Alias quals alias:Alias
  Alias aliasname colnames
  ColumnDef colname typeName:TypeName is_local
  TypeName names typmods typemod arrayBounds
  A_Expr kind name lexpr rexpr rexpr_list_start rexpr_list_end
  BoolExpr boolop args
  NullTest arg nulltesttype
  BooleanTest arg booltesttype
  SubLink subLinkType testexpr operName subselect
  CaseExpr arg args defresult
  CaseWhen expr result
  CoalesceExpr args
  MinMaxExpr op args
  RowExpr args row_format
  A_ArrayExpr elements list_start list_end
  A_Indirection arg indirection
  A_Indices is_slice lidx uidx
  A_Star
  A_Const ival:Integer fval:Float boolval:Boolean sval:Text bsval:BitString isnull
  ColumnRef fields
  ParamRef number
  TypeCast arg typeName:TypeName
  CollateClause arg collname
  FuncCall funcname args agg_order agg_filter over:WindowDef agg_within_group agg_star agg_distinct func_variadic
    funcformat
  NamedArgExpr arg name argnumber
  WindowDef name refname partitionClause orderClause frameOptions startOffset endOffset
  SortBy node sortby_dir sortby_nulls useOp
  GroupingSet kind content
  GroupingFunc args
  SQLValueFunction op typmod
  SetToDefault
  MultiAssignRef source colno ncolumns
  CurrentOfExpr cursor_name
  List items
  String sval
  Text sval
  Integer ival
  Float fval
  Boolean boolval
  BitString bsval`;

const fieldOf = (field: string): readonly [string, string | undefined] => {
  const [name = "", type] = field.split(":");
  return [name, type];
};

/** By type, then by field: the type that the field holds directly, if it does. */
const KNOWN: ReadonlyMap<string, ReadonlyMap<string, string | undefined>> = new Map(
  NODES.split(/\n {2}(?=\S)/)
    .filter((entry) => entry.trim() !== "")
    .map((entry) => {
      const [type = "", ...fields] = entry.trim().split(/\s+/);
      return [type, new Map(fields.map(fieldOf))];
    }),
);

/** Calls `visit` for each node that a node holds. Returns the name of a node or field that is not known, if there is one. */
export function visitFields(
  type: string,
  fields: Fields,
  visit: (type: string, fields: Fields) => string | undefined,
): string | undefined {
  const known = KNOWN.get(type);
  if (known === undefined) return type;
  for (const [field, value] of Object.entries(fields)) {
    if (field === "location") continue;
    if (!known.has(field)) return `${type}.${field}`;
    const direct = known.get(field);
    const unknown = direct === undefined ? visitEach(value, visit) : visit(direct, value as Fields);
    if (unknown !== undefined) return unknown;
  }
  return undefined;
}

/** A value, a node in an object by the name of its type, an empty object in its place, or a list of these. */
function visitEach(
  value: unknown,
  visit: (type: string, fields: Fields) => string | undefined,
): string | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  for (const node of Array.isArray(value) ? (value as unknown[]) : [value]) {
    for (const [type, fields] of Object.entries(node as Fields)) {
      const unknown = visit(type, fields as Fields);
      if (unknown !== undefined) return unknown;
    }
  }
  return undefined;
}
