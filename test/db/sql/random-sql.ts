// Statements made at random from a grammar of PostgreSQL; some are refused by it.

/** A generator of numbers below 1 that a seed determines (mulberry32). */
function numbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const TABLES = [
  ...["a", "b", "c", "users", "public.a", "public.users", '"User"', '"a b"', 'app."b"', "A", "Users"],
  ...['"select"', '"from"', "x", "y", "values_", "app.offset", "public.limit", "app.window"],
];
const NAMES = [
  ...[
    "x",
    "y",
    "z",
    "a",
    "users",
    "match",
    "key",
    "filter",
    "offset_",
    "rows",
    "only_",
    "at",
    "values_",
    "set",
  ],
  ...[
    "partition",
    "over",
    "system",
    "ordinality",
    "ties",
    "name",
    "zone",
    "update_",
    "recursive_",
    "insert",
    "delete",
  ],
  ...[
    "update",
    "value",
    "first",
    "next",
    "index",
    "language",
    "no",
    "share",
    "begin",
    "commit",
    "temp",
    "materialized",
  ],
];
const PLAIN_CALLS = ["lower", "count", "max", "coalesce", "pg_catalog.lower", "json_build_object", "unnest"];
const CALLS = [
  ...[
    "lower",
    "count",
    "max",
    "coalesce",
    "own",
    "match",
    "key",
    "filter",
    "partition",
    "left",
    "set",
    "cube",
    "date",
  ],
  ...[
    "text",
    "pg_catalog.lower",
    "app.lower",
    '"own"',
    '"lower"',
    "now",
    "join",
    "like",
    "unnest",
    "json_build_object",
  ],
  ...["extract", "app.select", "app.from", "pg_catalog.now"],
];

export function randomSql(seed: number): string {
  return new Grammar(numbers(seed)).text();
}

class Grammar {
  readonly #next: () => number;
  /** Most statements call nothing but plain functions, and are shallow: many of those can be cached. */
  readonly #isCalm: boolean;
  readonly #deepest: number;
  #depth = 0;

  constructor(next: () => number) {
    this.#next = next;
    this.#isCalm = next() < 0.7;
    this.#deepest = Math.floor(next() * 3.5);
  }

  get #function(): string {
    return this.#pick(this.#isCalm ? PLAIN_CALLS : CALLS);
  }

  text(): string {
    const text = this.#one(
      () => this.#query(),
      () => this.#query(),
      () => this.#query(),
      () => this.#query(),
      () => this.#change(),
      () => this.#change(),
      () => this.#other(),
      () => `${this.#query()}; ${this.#change()}`,
    );
    return this.#maybe(0.05) ? `/* ${this.#pick(["a", "/* b */", "--"])} */ ${text}` : text;
  }

  #pick<Each>(list: readonly Each[]): Each {
    return list[Math.floor(this.#next() * list.length)] as Each;
  }

  #maybe(chance = 0.3): boolean {
    return this.#next() < chance;
  }

  #one(...ways: readonly (() => string)[]): string {
    return this.#pick(ways)();
  }

  /** One to three. */
  #some(part: () => string, between = ", "): string {
    return Array.from({ length: 1 + Math.floor(this.#next() * 2.5) }, part).join(between);
  }

  /** Simpler where it is deep already. */
  #deeper(way: () => string, simple: () => string): string {
    if (this.#depth > this.#deepest) return simple();
    this.#depth++;
    try {
      return way();
    } finally {
      this.#depth--;
    }
  }

  #table(): string {
    return this.#pick(TABLES);
  }

  #alias(): string {
    const name = this.#pick(NAMES);
    return this.#pick(["", "", ` ${name}`, ` AS ${name}`, ` AS "${name}"`, ` AS ${name} (i, j)`]);
  }

  #column(): string {
    const name = this.#pick(NAMES);
    return this.#pick([name, name, `a.${name}`, `"${name}"`, `users.${name}`, "(a).b", "a.*"]);
  }

  #literal(): string {
    const plain = [
      "1",
      "$1",
      "'x'",
      "'from b'",
      "'it''s'",
      "$$ from c $$",
      "$q$;$q$",
      "NULL",
      "TRUE",
      "1.5e3",
      ".5",
    ];
    if (this.#isCalm) return this.#pick(plain);
    return this.#pick([
      ...[
        "E'\\n'",
        "'a\\_b'",
        "B'01'",
        "U&'d\\0061t'",
        "DATE '2020-01-01'",
        "'today'",
        "INTERVAL '1 day'",
        "X'1f'",
      ],
      ...["current_date", "CURRENT_USER", "$2::int[]"],
    ]);
  }

  #expression(): string {
    return this.#deeper(
      () =>
        this.#one(
          () => this.#column(),
          () => this.#literal(),
          () => this.#call(),
          () => `${this.#expression()} ${this.#operator()} ${this.#expression()}`,
          () => `(${this.#query()})`,
          () => `EXISTS (${this.#query()})`,
          () => `${this.#column()} IN (${this.#query()})`,
          () =>
            `${this.#column()} = ANY (${this.#one(
              () => this.#query(),
              () => this.#literal(),
            )})`,
          () => `${this.#column()} IN (${this.#some(() => this.#expression())})`,
          () => `CASE WHEN ${this.#expression()} THEN ${this.#expression()} ELSE ${this.#expression()} END`,
          () =>
            `CAST(${this.#expression()} AS ${this.#pick(["int", "varchar(10)", "app.kind", "numeric(3, 1)"])})`,
          () =>
            `${this.#literal()}::${this.#pick(["text", "varchar(3)", "date", "timestamp(3) with time zone"])}`,
          () => `${this.#column()} IS ${this.#pick(["", "NOT "])}DISTINCT FROM ${this.#expression()}`,
          () => `extract(year FROM ${this.#expression()})`,
          () => `substring(${this.#column()} FROM ${this.#expression()} FOR 2)`,
          () => `trim(BOTH ${this.#literal()} FROM ${this.#expression()})`,
          () => `overlay(${this.#column()} PLACING 'x' FROM ${this.#expression()})`,
          () => `ARRAY(${this.#query()})`,
          () => `ARRAY[${this.#some(() => this.#expression())}]`,
          () => `ROW(${this.#some(() => this.#expression())})`,
          () => `${this.#column()} BETWEEN SYMMETRIC (${this.#expression()}) AND (${this.#expression()})`,
          () => `${this.#column()} AT TIME ZONE ${this.#literal()}`,
          () => `${this.#column()} COLLATE "C"`,
          () => `NOT (${this.#expression()})`,
          () => `(${this.#expression()})`,
        ),
      () =>
        this.#one(
          () => this.#column(),
          () => this.#literal(),
        ),
    );
  }

  #operator(): string {
    return this.#pick([
      "=",
      "<",
      "+",
      "||",
      "AND",
      "OR",
      "LIKE",
      "ILIKE",
      "->",
      "@>",
      "?",
      "IS DISTINCT FROM",
      "~~",
    ]);
  }

  #call(): string {
    const distinct = this.#maybe(0.1) ? "DISTINCT " : "";
    const order = this.#maybe(0.1) ? ` ORDER BY ${this.#expression()}` : "";
    const filter = this.#maybe(0.1) ? ` FILTER (WHERE ${this.#expression()})` : "";
    const frame = this.#pick([
      "",
      " ROWS BETWEEN 1 PRECEDING AND CURRENT ROW",
      " GROUPS UNBOUNDED PRECEDING",
    ]);
    const over = this.#maybe(0.15)
      ? ` OVER (PARTITION BY ${this.#expression()} ORDER BY (${this.#column()})${frame})`
      : "";
    return `${this.#function}(${distinct}${this.#some(() => this.#expression())}${order})${filter}${over}`;
  }

  #source(): string {
    return this.#deeper(
      () =>
        this.#one(
          () => `${this.#table()}${this.#alias()}`,
          () => `${this.#table()}${this.#alias()}`,
          () => `ONLY ${this.#table()}`,
          () => `ONLY (${this.#table()})`,
          () => `${this.#table()} *`,
          () => `(${this.#query()}) AS ${this.#pick(NAMES)}`,
          () => `(${this.#query()}) ${this.#pick(NAMES)}`,
          () => `LATERAL (${this.#query()}) ${this.#pick(NAMES)}`,
          () => `(VALUES (${this.#some(() => this.#expression())})) AS v(i)`,
          () => `unnest(${this.#literal()}) WITH ORDINALITY AS t(id, n)`,
          () => `LATERAL unnest(${this.#column()}) t`,
          () => `jsonb_to_recordset($1) AS x(b int, c varchar(3))`,
          () => `ROWS FROM (generate_series(1, 2), unnest($1)) AS r`,
          () => `${this.#table()}${this.#alias()}${this.#isCalm ? "" : " TABLESAMPLE system(1)"}`,
          () => `${this.#function}(${this.#some(() => this.#expression())}) q`,
          () => `(${this.#joined()})`,
          () => `(${this.#joined()}) AS j`,
          () => `((${this.#query()})) s`,
          () => `((${this.#query()}) UNION (${this.#query()})) s`,
        ),
      () => this.#table(),
    );
  }

  #joined(): string {
    const kind = this.#pick(["JOIN", "LEFT JOIN", "RIGHT OUTER JOIN", "FULL JOIN", "INNER JOIN"]);
    const condition = this.#one(
      () => `ON ${this.#expression()}`,
      () => "USING (id)",
      () => "USING (id) AS shared",
    );
    const plain = this.#pick(["CROSS JOIN", "NATURAL JOIN", "NATURAL LEFT JOIN"]);
    return this.#one(
      () => `${this.#source()} ${kind} ${this.#source()} ${condition}`,
      () => `${this.#source()} ${plain} ${this.#source()}`,
      () => `${this.#source()} ${kind} ${this.#source()} ${kind} ${this.#source()} ${condition} ${condition}`,
    );
  }

  #from(): string {
    return this.#some(() =>
      this.#one(
        () => this.#source(),
        () => this.#source(),
        () => this.#joined(),
      ),
    );
  }

  #target(): string {
    const name = this.#pick(NAMES);
    const alias = this.#pick([
      "",
      "",
      "",
      ` AS ${name}`,
      ` AS "${name}"`,
      " AS from",
      " AS join",
      " AS select",
    ]);
    return `${this.#expression()}${alias}`;
  }

  #select(): string {
    const distinct = this.#pick(["", "", "", "DISTINCT ", `DISTINCT ON (${this.#column()}) `, "ALL "]);
    const parts = [
      `SELECT ${distinct}${this.#one(
        () => "*",
        () => this.#some(() => this.#target()),
      )}`,
      this.#maybe(0.9) ? `FROM ${this.#from()}` : "",
      this.#maybe() ? `WHERE ${this.#expression()}` : "",
      this.#maybe(0.1)
        ? `GROUP BY ${this.#pick(["1", "(a, b)", "ROLLUP (a, b)", "CUBE (a)", "GROUPING SETS ((a), ())", "DISTINCT a"])}`
        : "",
      this.#maybe(0.05) ? `HAVING ${this.#expression()}` : "",
      this.#maybe(0.05) ? `WINDOW w AS (PARTITION BY ${this.#column()})` : "",
    ];
    return parts.filter((part) => part !== "").join(this.#pick([" ", "\n"]));
  }

  #query(): string {
    const start = this.#maybe(0.2) ? `${this.#with()} ` : "";
    const body = this.#deeper(
      () =>
        this.#one(
          () => this.#select(),
          () => this.#select(),
          () => this.#select(),
          () =>
            `${this.#select()} ${this.#pick(["UNION", "UNION ALL", "EXCEPT", "INTERSECT"])} ${this.#select()}`,
          () => `(${this.#query()}) ${this.#pick(["UNION", "EXCEPT ALL"])} (${this.#query()})`,
          () => `(${this.#query()})`,
          () => `VALUES (${this.#some(() => this.#expression())})`,
          () => `TABLE ${this.#table()}`,
          () => `${this.#select()} UNION TABLE ${this.#table()}`,
        ),
      () => `SELECT 1 FROM ${this.#table()}`,
    );
    const end = [
      this.#maybe(0.15)
        ? `ORDER BY ${this.#expression()}${this.#pick(["", " DESC NULLS LAST", " USING <"])}`
        : "",
      this.#maybe(0.1)
        ? this.#pick(["LIMIT 5", "LIMIT (SELECT 1 FROM b)", "OFFSET 2", "FETCH FIRST (3) ROWS ONLY"])
        : "",
      this.#maybe(this.#isCalm ? 0 : 0.1)
        ? this.#pick(["FOR UPDATE", "FOR NO KEY UPDATE OF a", "FOR SHARE SKIP LOCKED"])
        : "",
    ];
    return [start + body, ...end].filter((part) => part !== "").join(" ");
  }

  #with(): string {
    const recursive = this.#pick(["", "", "RECURSIVE "]);
    const table = () => {
      const materialized = this.#pick(["", "", "MATERIALIZED ", "NOT MATERIALIZED "]);
      const body = this.#maybe(this.#isCalm ? 0.03 : 0.2) ? this.#change() : this.#query();
      return `${this.#pick(NAMES)}${this.#pick(["", "", "(i)", " (i, j)"])} AS ${materialized}(${body})`;
    };
    return this.#deeper(
      () => `WITH ${recursive}${this.#some(table)}`,
      () => `WITH ${this.#pick(NAMES)} AS (SELECT 1)`,
    );
  }

  #change(): string {
    return this.#deeper(
      () => {
        const start = this.#maybe(0.1) ? `${this.#with()} ` : "";
        const returning = this.#pick(["", "", " RETURNING *", ` RETURNING ${this.#target()}`]);
        const body = this.#one(
          () => this.#insert(),
          () => this.#insert(),
          () => this.#update(),
          () => this.#delete(),
          () => this.#merge(),
        );
        return `${start}${body}${returning}`;
      },
      () => `DELETE FROM ${this.#table()}`,
    );
  }

  #insert(): string {
    const columns = this.#pick(["", " (i)", " (i, j)", ' ("i")', " AS z (i)"]);
    const rows = this.#one(
      () => `VALUES (${this.#some(() => this.#expression())})`,
      () => this.#query(),
      () => "DEFAULT VALUES",
      () => `OVERRIDING SYSTEM VALUE VALUES (${this.#expression()})`,
    );
    const conflict = this.#one(
      () => "",
      () => "",
      () => " ON CONFLICT DO NOTHING",
      () => ` ON CONFLICT (i) DO UPDATE SET i = ${this.#expression()} WHERE ${this.#expression()}`,
      () => ` ON CONFLICT (lower(i)) WHERE i > 0 DO UPDATE SET (i, j) = (${this.#query()})`,
      () => " ON CONFLICT ON CONSTRAINT a_pkey DO NOTHING",
    );
    return `INSERT INTO ${this.#table()}${columns} ${rows}${conflict}`;
  }

  #update(): string {
    const set = this.#one(
      () => `i = ${this.#expression()}`,
      () => `(i, j) = (${this.#expression()}, DEFAULT)`,
      () => `i[1] = ${this.#expression()}, j = (${this.#query()})`,
    );
    const from = this.#maybe() ? ` FROM ${this.#from()}` : "";
    const where = this.#maybe(0.8) ? ` WHERE ${this.#expression()}` : "";
    return `UPDATE ${this.#pick(["", "", "ONLY "])}${this.#table()}${this.#pick(["", " AS z", " z"])} SET ${set}${from}${where}`;
  }

  #delete(): string {
    const using = this.#maybe() ? ` USING ${this.#from()}` : "";
    const where = this.#maybe(0.8) ? ` WHERE ${this.#expression()}` : "";
    return `DELETE FROM ${this.#pick(["", "", "ONLY "])}${this.#table()}${this.#pick(["", " AS z"])}${using}${where}`;
  }

  #merge(): string {
    const matched = this.#one(
      () => `UPDATE SET i = ${this.#expression()}`,
      () => "DELETE",
      () => "DO NOTHING",
    );
    const unmatched = this.#one(
      () => `INSERT (i) VALUES (${this.#expression()})`,
      () => "INSERT DEFAULT VALUES",
      () => "DO NOTHING",
    );
    return `MERGE INTO ${this.#pick(["", "ONLY "])}${this.#table()} AS t USING ${this.#source()} ON ${this.#expression()} WHEN MATCHED AND ${this.#expression()} THEN ${matched} WHEN NOT MATCHED THEN ${unmatched}`;
  }

  #other(): string {
    return this.#one(
      () => `DO $$ BEGIN DELETE FROM ${this.#table()}; END $$`,
      () => `CALL own(${this.#expression()})`,
      () => `TRUNCATE ${this.#table()}, ONLY ${this.#table()} CASCADE`,
      () => `COPY ${this.#table()} (i) FROM STDIN`,
      () => `COPY ${this.#table()} FROM STDIN WHERE ${this.#expression()}`,
      () =>
        `COPY (${this.#one(
          () => this.#query(),
          () => `${this.#change()} RETURNING 1`,
        )}) TO STDOUT`,
      () => `EXPLAIN ${this.#pick(["", "ANALYZE ", "(ANALYZE) ", "(COSTS false) "])}${this.#query()}`,
      () => `SELECT 1 INTO ${this.#pick(["", "TEMP ", "UNLOGGED TABLE "])}z FROM ${this.#from()}`,
      () => `CREATE TABLE z AS ${this.#query()}`,
      () => `CREATE VIEW z AS ${this.#query()}`,
      () => `PREPARE p AS ${this.#query()}`,
      () => "EXECUTE p(1)",
      () => `DECLARE p CURSOR FOR ${this.#query()}`,
      () => `REFRESH MATERIALIZED VIEW CONCURRENTLY ${this.#table()}`,
      () => `LOCK ${this.#table()} IN SHARE MODE`,
      () => `CREATE FUNCTION f() RETURNS int LANGUAGE sql BEGIN ATOMIC ${this.#query()}; END`,
      () =>
        this.#pick([
          "BEGIN",
          "COMMIT",
          "ROLLBACK",
          "SAVEPOINT a",
          "SET x = 1",
          "SHOW x",
          "NOTIFY x",
          "FETCH 1 FROM p",
        ]),
      () =>
        this.#pick(["COMMIT PREPARED 'x'", "PREPARE TRANSACTION 'x'", "VACUUM a", "DISCARD ALL", "LISTEN x"]),
    );
  }
}
