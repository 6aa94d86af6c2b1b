// The tags of tables and of single rows, by which reads are invalidated.
import type { KeyColumn, RowKey } from "../../core/db-session.ts";
import { ConfigError, describeArrival } from "../../core/errors.ts";

/**
 * The tag that reads of a table carry: for `invalidateTags`, or for `tables.<name>.tags` of a table that changes with it.
 * Schema and case are ignored: `tableTag('App."User"')` equals `tableTag("user")`.
 */
export function tableTag(table: string): string {
  return tagOfTable(bareName(table));
}

/** Of a table by its name alone, as a statement or the database has it: a dot in it is part of the name. */
export const tagOfTable = (name: string): string => `table:${name.toLowerCase()}`;

/** In lower case, without schema and quotes. */
export function bareName(table: string): string {
  const last = /(?:"((?:[^"]|"")+)"|[^".]+)$/.exec(table);
  const name = last === null ? table : (last[1]?.replaceAll('""', '"') ?? last[0]);
  return name.toLowerCase();
}

/** A value of a primary key, or the values of its columns in the order of the key. */
export type RowId = string | number | bigint | readonly (string | number | bigint)[];

/**
 * The tag of one row, such as `row:users:42`: a feed with `rows: true` invalidates it when the row changes. `id` is the
 * primary key as the database prints it. An entry that carries it must also carry `rowsTag(table)`. Throws ConfigError.
 */
export function rowTag(table: string, id: RowId): string {
  const values = Array.isArray(id) ? (id as readonly unknown[]) : [id];
  if (values.length === 0 || !values.every(isKeyValue)) {
    throw new ConfigError(
      "ARGUMENT_INVALID",
      `rowTag(): id must be a string, a number, a bigint or a list of them; got ${describeArrival(id)}.`,
    );
  }
  return rowTagOf(bareName(table), values.map(String));
}

/** The tag for changes whose rows are not known: a truncation, a gap in the stream, a write of a session. */
export function rowsTag(table: string): string {
  return rowsTagOfTable(bareName(table));
}

/** As tagOfTable. */
export const rowsTagOfTable = (name: string): string => `rows:${name.toLowerCase()}`;

/** Of a table by its name alone. */
export function rowTagOf(name: string, values: readonly string[]): string {
  return `row:${name.toLowerCase()}:${values.map(escaped).join(":")}`;
}

const isKeyValue = (value: unknown): boolean =>
  typeof value === "string" || typeof value === "bigint" || Number.isFinite(value);

/** So that the columns of one key cannot be taken for those of another. */
function escaped(value: string): string {
  return value.replace(/[%:]/g, (character) => (character === ":" ? "%3a" : "%25"));
}

/** The row that a read by primary key returns. undefined: the parameters may be written in more than one way. */
export function pointTag(
  table: string,
  key: RowKey,
  point: ReadonlyMap<string, number | string>,
  values: readonly unknown[],
): string | undefined {
  const texts = key.map(({ name, kind }) => {
    const value = point.get(name);
    return value === undefined ? undefined : keyText(typeof value === "number" ? values[value] : value, kind);
  });
  return texts.includes(undefined) ? undefined : rowTagOf(table, texts as string[]);
}

const INTEGER = /^(?:0|-?[1-9]\d*)$/;
const UUID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i;

/** The value as the database prints it. */
function keyText(value: unknown, kind: KeyColumn["kind"]): string | undefined {
  if (typeof value !== "string" && typeof value !== "number" && typeof value !== "bigint") return undefined;
  const text = String(value);
  if (kind === "integer") return INTEGER.test(text) ? text : undefined;
  if (kind === "number") return INTEGER.test(text) && Number.isSafeInteger(Number(text)) ? text : undefined;
  if (kind === "uuid") return UUID.test(text) ? text.toLowerCase() : undefined;
  return text;
}
