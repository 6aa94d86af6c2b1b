// A result as it is cached: the text of every field as the server sent it. Each caller's own type parsers and row mode are
// applied when it is read.
import type { Field, PgClient, QueryClass, QueryConfig, QueryResult, TypeParsers } from "./library.ts";

interface KeptResult {
  readonly command: string | null;
  readonly rowCount: number | null;
  readonly oid: number | null;
  readonly fields: readonly Field[];
  readonly rows: readonly (readonly (string | null)[])[];
}

const AS_SENT: TypeParsers = { getTypeParser: () => (value) => value };

/** Builds results for a client with the library's own class and the client's parsers. */
export interface ResultMaker {
  readonly query: QueryClass;
  readonly types: TypeParsers | undefined;
}

/** undefined: results of this version of the library, or of a substitute for it, cannot be built. */
export function resultMaker(client: PgClient): ResultMaker | undefined {
  const { Query: query } = client.constructor as { readonly Query?: QueryClass };
  if (typeof query !== "function" || client.binary === true || client.connection === undefined)
    return undefined;
  const isUsable = usable.get(query) ?? makesResults(query);
  usable.set(query, isUsable);
  return isUsable ? { query, types: client._types } : undefined;
}

/** Whether results can be built with a class: it is asked with every statement. */
const usable = new WeakMap<QueryClass, boolean>();

function makesResults(query: QueryClass): boolean {
  try {
    return typeof new query({ text: "" })._result?.parseRow === "function";
  } catch {
    return false;
  }
}

/** Whether the result can be cached: binary fields are not text, and paged rows depend on the connection. */
export function isKeepable({ binary, rows, text }: QueryConfig): boolean {
  return binary !== true && !rows && typeof text === "string";
}

export async function fetchKept(client: PgClient, config: QueryConfig): Promise<KeptResult> {
  const result = (await client.query({ ...config, rowMode: "array", types: AS_SENT })) as QueryResult;
  const { command, rowCount, oid, fields } = result;
  const rows = result.rows as (string | null)[][];
  return { command, rowCount, oid, fields: fields.map((field) => ({ ...field })), rows };
}

/** What the library would have returned for this call; undefined if `data` is not a cached result. */
export function restoreKept(
  data: unknown,
  { query, types: ownTypes }: ResultMaker,
  { rowMode, types }: QueryConfig,
): QueryResult | undefined {
  if (!isKept(data)) return undefined;
  const result = new query({
    text: "",
    ...(rowMode === undefined ? {} : { rowMode }),
    ...(types === undefined ? {} : { types }),
  })._result;
  if (result === undefined) return undefined;
  result._types ??= ownTypes;
  result.addFields(data.fields.map((field) => ({ ...field })));
  for (const row of data.rows) result.addRow(result.parseRow(row));
  return Object.assign(result, { command: data.command, rowCount: data.rowCount, oid: data.oid });
}

function isKept(data: unknown): data is KeptResult {
  if (typeof data !== "object" || data === null) return false;
  const { fields, rows } = data as Partial<KeptResult>;
  return Array.isArray(fields) && Array.isArray(rows);
}
