// The tags that one transaction of the stream invalidates.
import { rowsTagOfTable, rowTagOf, tagOfTable } from "../tracking/table-tags.ts";
import type { Catalogue } from "./catalogue.ts";
import type { Relation, Tuple } from "./pgoutput.ts";

/** A transaction that changes more rows drops all rows of its tables instead. */
const MOST_ROWS = 1_000;

/** A table that a relation's changes concern, and where in a tuple its primary key is. */
interface Target {
  readonly name: string;
  /** undefined: a change may concern rows whose key is not sent. */
  readonly key: readonly number[] | undefined;
}

/** What a relation's changes concern. */
export type Targets = readonly Target[];

/** undefined: the catalogue does not know this relation, or knows it by another name. */
export function targetsOf(relation: Relation, catalogue: Catalogue): Targets | undefined {
  const tables = catalogue.changed.get(relation.oid);
  if (!tables?.some(({ name }) => name === relation.name)) return undefined;
  return tables.map(({ name, key }) => {
    const places = key.map((column) =>
      // A column outside of the replica identity may change without its old value being sent.
      relation.columns.findIndex((each) => each.name === column && each.isKey),
    );
    return { name, key: places.length > 0 && !places.includes(-1) ? places : undefined };
  });
}

export class TransactionTags {
  readonly xid: number;
  /** The position behind its commit. */
  end = 0n;
  /** When it committed, by the server's clock. */
  committedAt = 0;
  /** It concerns everything published: a change of the schema, or of a relation nobody knows. */
  isEverything = false;
  readonly #withRows: boolean;
  readonly #names = new Set<string>();
  /** Tables all of whose rows it concerns. */
  readonly #whole = new Set<string>();
  #rows: Set<string> | undefined = new Set();

  constructor(xid: number, withRows: boolean) {
    this.xid = xid;
    this.#withRows = withRows;
  }

  get isEmpty(): boolean {
    return this.#names.size === 0 && !this.isEverything;
  }

  /** How much memory it takes, in tags. */
  get size(): number {
    return this.#names.size + (this.#rows?.size ?? 0);
  }

  change(targets: Targets, before: Tuple | undefined, after: Tuple | undefined): void {
    for (const { name, key } of targets) {
      this.#names.add(name);
      if (!this.#withRows || this.#rows === undefined) continue;
      for (const tuple of [before, after]) if (tuple !== undefined) this.#row(name, key, tuple);
    }
    if (this.#rows !== undefined && this.#rows.size > MOST_ROWS) this.forgetRows();
  }

  truncate(targets: Targets): void {
    for (const { name } of targets) {
      this.#names.add(name);
      this.#whole.add(name);
    }
  }

  /** All rows of its tables instead of single ones. */
  forgetRows(): void {
    this.#rows = undefined;
  }

  tags(): readonly string[] {
    const names = [...this.#names];
    const whole = this.#rows === undefined ? names : [...this.#whole];
    const rows = this.#withRows ? [...whole.map(rowsTagOfTable), ...(this.#rows ?? [])] : [];
    return [...names.map(tagOfTable), ...rows];
  }

  #row(name: string, key: readonly number[] | undefined, tuple: Tuple): void {
    const values = key?.map((at) => tuple[at]);
    if (values === undefined || values.includes(undefined)) this.#whole.add(name);
    else this.#rows?.add(rowTagOf(name, values as string[]));
  }
}

/** For changes that are not known one by one. */
export function tagsOfAll(names: Iterable<string>, withRows: boolean): readonly string[] {
  return [...names].flatMap((name) =>
    withRows ? [tagOfTable(name), rowsTagOfTable(name)] : [tagOfTable(name)],
  );
}
