// From the parameters of a read by primary key to the tag of the row that it returns.
import type { KeyColumn, RowKey } from "../../core/db-session.ts";
import type { PointRead } from "../sql/point-read.ts";
import { rowTagOf } from "./table-tags.ts";

/** The row that a read by primary key returns. undefined: the parameters may be written in more than one way. */
export function pointTag(
  table: string,
  key: RowKey,
  point: PointRead,
  values: readonly unknown[],
): string | undefined {
  const texts = key.map(({ name, kind }) => {
    const at = point.get(name);
    return at === undefined ? undefined : keyText(values[at], kind);
  });
  return texts.includes(undefined) ? undefined : rowTagOf(table, texts as string[]);
}

const UUID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i;

/** The value as the database prints it. */
function keyText(value: unknown, kind: KeyColumn["kind"]): string | undefined {
  if (typeof value !== "string" && typeof value !== "number" && typeof value !== "bigint") return undefined;
  const text = String(value);
  if (kind === "integer") return /^(?:0|-?[1-9]\d*)$/.test(text) ? text : undefined;
  if (kind === "uuid") return UUID.test(text) ? text.toLowerCase() : undefined;
  return text;
}
