// A fingerprint of a connection's type parsers: kysely hides them, so a sample value of each PostgreSQL type is parsed.
import { nodeCrypto, types } from "../../core/lazy-builtin.ts";

const TYPES: Readonly<Record<string, string>> = {
  int2: "1",
  int4: "1",
  int8: "9007199254740993",
  float4: "1.5",
  float8: "1.5",
  numeric: "1.50",
  money: "1.5",
  bool: "t",
  text: "a",
  bpchar: "a",
  uuid: "00000000-0000-0000-0000-000000000001",
  bytea: "\\x01",
  date: "2020-01-02",
  time: "03:04:05",
  timetz: "03:04:05+02",
  timestamp: "2020-07-02 03:04:05",
  timestamptz: "2020-07-02 03:04:05+02",
  interval: "1 day 2 hours",
  json: '{"a":[1]}',
  jsonb: '{"a":[1]}',
  point: "(1,2)",
  inet: "10.0.0.1",
  varchar: "a",
  name: "a",
  '"char"': "a",
  oid: "1",
  regclass: "pg_class",
  cidr: "10.0.0.0/8",
  macaddr: "08:00:2b:01:02:03",
  bit: "1",
  varbit: "101",
  box: "(1,1),(0,0)",
  circle: "<(0,0),1>",
  line: "{1,2,3}",
  lseg: "[(0,0),(1,1)]",
  path: "((0,0),(1,1))",
  polygon: "((0,0),(1,1))",
  tsvector: "a",
  tsquery: "a",
  int4range: "[1,2)",
  int8range: "[1,2)",
  numrange: "[1,2)",
  daterange: "[2020-01-02,2020-01-03)",
  tsrange: "[2020-01-02,2020-01-03)",
  tstzrange: "[2020-01-02,2020-01-03)",
  jsonpath: "$",
  pg_lsn: "0/1",
};

/** Each type as a single value and as an array. */
export const SAMPLE = `SELECT ${Object.entries(TYPES)
  .flatMap(([type, text], at) => [
    `'${text}'::${type} AS v${at}`,
    `ARRAY['${text}'::${type}]::${type}[] AS a${at}`,
  ])
  .join(", ")}`;

export function sampleDigest(row: Readonly<Record<string, unknown>> | undefined): string {
  return nodeCrypto().hash("sha256", JSON.stringify(Object.values(row ?? {}).map(parsedForm)), "base64url");
}

function parsedForm(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(parsedForm);
  if (typeof value !== "object" || value === null) return `${typeof value} ${String(value)}`;
  const name: unknown = Object.getPrototypeOf(value)?.constructor?.name;
  return [name, types.isDate(value) ? value.getTime() : JSON.stringify(value)];
}
