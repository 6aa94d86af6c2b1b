// The tag under which reads of a table are cached.

/**
 * The tag of a table, for `invalidateTags`, and for `tables.<name>.tags` of a table that changes along with this one.
 * Neither the schema nor upper and lower case count: `tableTag('App."User"')` and `tableTag("user")` are the same.
 */
export function tableTag(table: string): string {
  return `table:${bareName(table)}`;
}

/** The name without schema and quotes, in lower case. */
export function bareName(table: string): string {
  const last = /(?:"((?:[^"]|"")+)"|[^".]+)$/.exec(table);
  const name = last === null ? table : (last[1]?.replaceAll('""', '"') ?? last[0]);
  return name.toLowerCase();
}
