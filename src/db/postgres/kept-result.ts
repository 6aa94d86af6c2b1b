// A result as it is cached: the text of every field as the server sent it. Each caller's own parsers are applied when it is read.
import type { Column, Options, Query, Result } from "./library.ts";

interface KeptResult {
  readonly command: string;
  readonly columns: readonly Column[];
  readonly rows: readonly (readonly (string | null)[])[];
}

/** What results of one `sql` are built with. */
export interface ResultMaker {
  readonly options: Options;
  /** The library's class, once a result was seen. */
  Result?: new () => Result;
}

/** Only rows as objects are kept. */
export const isKeepable = ({ isRaw, streaming, cursorFn, forEachFn }: Query): boolean =>
  isRaw === undefined && streaming !== true && cursorFn === undefined && forEachFn === undefined;

/** `result`: of a query whose fields are buffers. */
export function keptResult(result: Result, maker: ResultMaker): KeptResult {
  maker.Result = result.constructor as new () => Result;
  return {
    command: result.command,
    columns: (result.columns ?? []).map(({ name, table, number, type }) => ({ name, table, number, type })),
    rows: (result as unknown as readonly (readonly (Uint8Array | null)[])[]).map((row) =>
      row.map((field) => (field === null ? null : Buffer.from(field).toString())),
    ),
  };
}

/** undefined: `data` is not a cached result, or nobody knows yet what results look like. */
export function restoreKept(
  data: unknown,
  { options, Result }: ResultMaker,
  text: string,
): Result | undefined {
  if (!isKept(data) || Result === undefined) return undefined;
  const { column: _, value: values, row: rows } = options.transform;
  const columns = data.columns.map((column) => ({ ...column, parser: options.parsers[column.type] }));
  const result = new Result();
  for (const fields of data.rows) {
    const row: Record<string, unknown> = {};
    for (const [at, column] of columns.entries()) {
      const { parser } = column;
      const field = fields[at] ?? null;
      // An array begins with its brace, which its parser does not expect.
      const value = field === null ? null : parser ? parser(parser.array ? field.slice(1) : field) : field;
      row[column.name] = values.from ? values.from(value, column) : value;
    }
    result.push(rows.from ? rows.from(row) : row);
  }
  const statement = { name: "", string: text, types: [], columns };
  return Object.assign(result, { command: data.command, count: result.length, columns, statement });
}

function isKept(data: unknown): data is KeptResult {
  const { columns, rows } = (data ?? {}) as Partial<KeptResult>;
  return Array.isArray(columns) && Array.isArray(rows);
}
