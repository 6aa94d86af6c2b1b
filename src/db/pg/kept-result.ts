// A result as it is kept in the cache: the text of every field as the server sent it. What the application makes of it,
// with its own type parsers and its own row mode, is made anew for every caller.
import type { Field, PgClient, QueryClass, QueryConfig, QueryResult, TypeParsers } from "./library.ts";

interface KeptResult {
  readonly command: string | null;
  readonly rowCount: number | null;
  readonly oid: number | null;
  readonly fields: readonly Field[];
  readonly rows: readonly (readonly (string | null)[])[];
}

const AS_SENT: TypeParsers = { getTypeParser: () => (value) => value };

/** What makes results for a client: the library's own class of them, and the client's parsers. */
export interface ResultMaker {
  readonly query: QueryClass;
  readonly types: TypeParsers | undefined;
}

/** undefined: a version of the library, or another one in its place, whose results cannot be made. */
export function resultMaker(client: PgClient): ResultMaker | undefined {
  const { Query: query } = client.constructor as { readonly Query?: QueryClass };
  if (typeof query !== "function" || client.binary === true || client.connection === undefined)
    return undefined;
  try {
    const isMade = typeof new query({ text: "" })._result?.parseRow === "function";
    return isMade ? { query, types: client._types } : undefined;
  } catch {
    return undefined;
  }
}

/** Whether results of such a call can be kept: binary fields are not text, and pages of rows are an affair of the connection. */
export function isKeepable({ binary, rows, text }: QueryConfig): boolean {
  return binary !== true && !rows && typeof text === "string";
}

export async function fetchKept(client: PgClient, config: QueryConfig): Promise<KeptResult> {
  const result = (await client.query({ ...config, rowMode: "array", types: AS_SENT })) as QueryResult;
  const { command, rowCount, oid, fields } = result;
  const rows = result.rows as (string | null)[][];
  return { command, rowCount, oid, fields: fields.map((field) => ({ ...field })), rows };
}

/** What the library would have returned for this call; undefined when `data` is not a kept result. */
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
