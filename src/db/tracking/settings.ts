// What determines the result of a read besides rows: which database it runs in, and the settings of the session.
import type { Trust } from "../sql/settled-statement.ts";
import type { Catalogue } from "./catalogue.ts";

/** What the database reports about a connection. */
export interface Settings {
  /** Connections with the same fingerprint get the same rows for the same statement. */
  readonly fingerprint: string;
  /** Isolation level READ COMMITTED: each statement of a transaction sees what was committed before it. */
  readonly readsCommitted: boolean;
  /** Its reads must not be shared: it is on a replica, has temporary tables, or has written what is not committed. */
  readonly isUnshareable: boolean;
  /** For each table asked for: the tables whose writes change its rows; undefined: they are not the same for every reader. */
  readonly tables: ReadonlyMap<string, readonly string[] | undefined>;
  /** For each function asked for. */
  readonly functions: ReadonlyMap<string, Trust>;
  readonly catalogue: Catalogue;
}

/** The tables and functions that a statement names. */
export interface Names {
  readonly tables: readonly string[];
  readonly functions: readonly string[];
}

/** Whether reads of these tables may be cached under these settings. */
export function areShareable(settings: Settings, tables: readonly string[]): boolean {
  return !settings.isUnshareable && tables.every((table) => settings.tables.get(table) !== undefined);
}

/** Whether everything that a statement names has been asked for. */
export function covers(settings: Settings, { tables, functions }: Names): boolean {
  return (
    tables.every((table) => settings.tables.has(table)) &&
    functions.every((name) => settings.functions.has(name))
  );
}

/** The tables whose writes change what these tables show. */
export function sourcesOf({ tables: known }: Settings, tables: readonly string[]): readonly string[] {
  return [...new Set(tables.flatMap((table) => known.get(table) ?? []))];
}

/** The same settings with the names of both; the later report wins. */
export function combined(known: Settings, later: Settings): Settings {
  return {
    ...later,
    tables: new Map([...known.tables, ...later.tables]),
    functions: new Map([...known.functions, ...later.functions]),
  };
}
