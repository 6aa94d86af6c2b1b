// A call of `query` in any of its forms: text or config, values, callback.
import type { Callback, QueryConfig } from "./library.ts";

export interface QueryCall {
  readonly config: QueryConfig;
  readonly callback: Callback | undefined;
  /** The arguments without the callback, as they came. */
  readonly sent: readonly unknown[];
}

/** undefined: the library is to say what is wrong with it. */
export function queryCall(args: readonly unknown[]): QueryCall | undefined {
  const [query, second, third] = args;
  if (typeof query !== "string" && (typeof query !== "object" || query === null)) return undefined;
  const given: QueryConfig = typeof query === "string" ? { text: query } : query;
  const values = typeof second === "function" || !second ? given.values : (second as readonly unknown[]);
  const callback = third || (typeof second === "function" ? second : undefined) || given.callback;
  if (callback !== undefined && typeof callback !== "function") return undefined;
  const config = configOf(given, values);
  // The object may be of a class that keeps more in it than is known here.
  const sent = given.callback === undefined ? [query, values] : [config];
  return { config, callback: callback as Callback | undefined, sent };
}

/** A copy of what the library reads, which may be getters of a class. */
function configOf(given: QueryConfig, values: readonly unknown[] | undefined): QueryConfig {
  const { text, name, rowMode, types, binary, rows, portal, queryMode, query_timeout } = given;
  const config = { text, values, name, rowMode, types, binary, rows, portal, queryMode, query_timeout };
  return Object.fromEntries(Object.entries(config).filter(([, value]) => value !== undefined));
}
