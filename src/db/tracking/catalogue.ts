// What a database's own catalogue says, shared by its connections: which functions can be trusted and what writes touch.
import type { ConnectionDriver } from "../../core/db-session.ts";
import { type BodyWrites, writtenByFunction } from "../sql/routine-body.ts";
import type { Trust } from "../sql/settled-statement.ts";
import { touchedInMysql } from "./mysql-catalogue.ts";
import {
  BODIES,
  DEEP_TOUCHED,
  RECORD,
  recordsIn,
  TOUCHED,
  TOUCHED_STAMP,
  trustOf,
} from "./postgres-catalogue.ts";
import { touchedInSqlite } from "./sqlite-catalogue.ts";
import { Writes } from "./transaction.ts";

/** Names that applications use are few; more than this are generated. */
const MOST_NAMES = 5_000;
/** Statements name fewer tables. */
const MOST_WORDS = 100;
/** Triggers that write tables with triggers that write tables ... */
const MOST_ROUNDS = 5;

export class Catalogue {
  /** Relations that are part of others or made of them: the longer question about them is asked at once. */
  readonly deepTables = new Set<string>();
  /** What such relations read, by their names. */
  readonly resolved = new Map<string, ResolvedTables>();
  #functions = new Map<string, Trust>();
  #stamp = "";
  /** What writes to some tables touched when it was last asked. */
  readonly #touched = new Map<string, Writes>();
  /** For tables whose writes touch others. */
  readonly #answers = new Map<string, Answer>();
  /** What a trigger's function writes, by its id and version. */
  readonly #bodies = new Map<string, BodyWrites>();

  trustOf(name: string): Trust | undefined {
    return this.#functions.get(name);
  }

  /** `stamp`: changes when a function is created anywhere in the database. */
  learn(functions: ReadonlyMap<string, Trust>, stamp: string): void {
    if (stamp !== this.#stamp || this.#functions.size > MOST_NAMES) this.#functions = new Map();
    this.#stamp = stamp;
    for (const [name, trust] of functions) this.#functions.set(name, trust);
  }

  resolve(names: string, answer: ResolvedTables): void {
    if (this.resolved.size > MOST_NAMES) this.resolved.clear();
    this.resolved.set(names, answer);
  }

  /** What was written along with `written`, as far as it is known without asking. */
  touchedBefore(written: Writes): Writes {
    return this.#touched.get(keyOf(written)) ?? new Writes([], true);
  }

  /**
   * What was written with everything that triggers, cascades and rules write along. What was touched when it was last asked
   * counts too: the question comes after the commit, when a trigger may have been dropped.
   */
  async touchedBy(driver: ConnectionDriver, written: Writes): Promise<Writes> {
    if (written.tables.size === 0 || isLikelyText(written)) return written;
    const writes = written.copy();
    const key = keyOf(written);
    const known = this.#touched.get(key);
    if (known !== undefined) writes.add(known.tables, known.anything);
    try {
      const touched = await this.#touchedIn(driver, key, [...written.tables]);
      if (this.#touched.size > MOST_NAMES) this.#touched.clear();
      this.#touched.set(key, touched);
      writes.add(touched.tables, touched.anything);
    } catch {
      writes.add([], true);
    }
    return writes;
  }

  #touchedIn(driver: ConnectionDriver, key: string, names: readonly string[]): Promise<Writes> {
    if (driver.dialect === "postgres") return this.#ask(driver, key, names);
    return driver.dialect === "mysql" ? touchedInMysql(driver, names) : touchedInSqlite(driver, names);
  }

  async #ask(driver: ConnectionDriver, key: string, names: readonly string[]): Promise<Writes> {
    const known = this.#answers.get(key);
    const open = known === undefined ? await this.#deepOf(driver, names) : names;
    if (open.length === 0) return new Writes();
    // Taken before the longer question: if the catalogue changes in between, it differs the next time.
    const stamp =
      known && (await text(driver, TOUCHED_STAMP, [known.names, known.relations, known.functions]));
    if (known !== undefined && known.stamp === stamp) return known.writes;
    const answer = await this.#follow(driver, open);
    if (this.#answers.size > MOST_NAMES) this.#answers.clear();
    const isSame = known !== undefined && sameNames(known, answer);
    this.#answers.set(key, { ...answer, stamp: isSame ? stamp : undefined });
    return answer.writes;
  }

  async #deepOf(driver: ConnectionDriver, names: readonly string[]): Promise<readonly string[]> {
    const deep = new Set<string>();
    for (const [name = "", state] of await records(driver, TOUCHED, names)) {
      if (state !== "plain") deep.add(name);
    }
    return [...deep];
  }

  /** Follows the bodies of triggers to the tables that they name, and on to the triggers of those. */
  async #follow(driver: ConnectionDriver, start: readonly string[]): Promise<Answer> {
    const writes = new Writes();
    const found = { relations: new Set<string>(), functions: new Set<string>(), names: new Set(start) };
    let open = start;
    for (let round = 0; open.length > 0 && !writes.anything; round++) {
      if (round === MOST_ROUNDS) writes.add([], true);
      const triggers = new Map<string, string>();
      for (const [kind, name = "", ...details] of await records(driver, DEEP_TOUCHED, open)) {
        const [first = "", role] = details;
        if (kind === "relation") {
          found.relations.add(first);
          if (role !== "part") writes.add([name], false);
        } else if (kind === "trigger") triggers.set(name, `${name} ${first}`);
        else writes.add([], trustOf([details]) === "own");
      }
      for (const id of triggers.keys()) found.functions.add(id);
      const bodies = await this.#bodiesOf(driver, triggers);
      const named = bodies.flatMap(({ tables }) => tables);
      writes.add(
        named,
        bodies.some(({ anything }) => anything),
      );
      open = named.filter((table) => !found.names.has(table));
      for (const table of open) found.names.add(table);
    }
    return {
      writes,
      names: [...found.names].sort(),
      relations: [...found.relations].sort(),
      functions: [...found.functions].sort(),
    };
  }

  /** `triggers`: the versions of their functions by id. */
  async #bodiesOf(
    driver: ConnectionDriver,
    triggers: ReadonlyMap<string, string>,
  ): Promise<readonly BodyWrites[]> {
    const unknown = [...triggers].filter(([, version]) => !this.#bodies.has(version)).map(([id]) => id);
    if (unknown.length > 0) {
      if (this.#bodies.size > MOST_NAMES) this.#bodies.clear();
      for (const [id = "", language = "", body = ""] of await records(driver, BODIES, unknown)) {
        this.#bodies.set(triggers.get(id) ?? "", writtenByFunction(body, language));
      }
    }
    return [...triggers.values()].map((version) => this.#bodies.get(version) ?? ANYTHING);
  }
}

/** What relations read, and what that was concluded from. */
export interface ResolvedTables {
  /** For each, the tables whose writes change its rows; undefined: its reads are not cached. */
  readonly tables: ReadonlyMap<string, readonly string[] | undefined>;
  /** Ids. */
  readonly relations: readonly string[];
  readonly functions: readonly string[];
  readonly stamp?: string | undefined;
}

/** What a write to some tables touches, and what that was concluded from. */
interface Answer {
  readonly writes: Writes;
  readonly names: readonly string[];
  readonly relations: readonly string[];
  readonly functions: readonly string[];
  readonly stamp?: string | undefined;
}

function sameNames(one: Answer, other: Answer): boolean {
  const parts = ({ names, relations, functions }: Answer) => JSON.stringify([names, relations, functions]);
  return parts(one) === parts(other);
}

const ANYTHING: BodyWrites = { tables: [], anything: true };

/** The words of a text that was not understood count as tables; a question about all of them would take long. */
const isLikelyText = ({ tables, anything }: Writes): boolean => anything && tables.size > MOST_WORDS;

function keyOf({ tables }: Writes): string {
  return [...tables].sort().join(RECORD);
}

async function records(
  driver: ConnectionDriver,
  question: string,
  names: readonly string[],
): Promise<readonly (readonly string[])[]> {
  return recordsIn(await text(driver, question, [names]));
}

async function text(
  driver: ConnectionDriver,
  question: string,
  lists: readonly (readonly string[])[],
): Promise<string> {
  const [row] = await driver.query(
    question,
    lists.map((names) => names.join(RECORD)),
  );
  return String(row?.tables ?? "");
}

const MOST_DATABASES = 100;
const catalogues = new Map<string, Catalogue>();

/** The one for a database, as it names itself. */
export function catalogueOf(database: string): Catalogue {
  const found = catalogues.get(database) ?? new Catalogue();
  if (catalogues.size >= MOST_DATABASES) catalogues.delete(catalogues.keys().next().value ?? "");
  catalogues.set(database, found);
  return found;
}
