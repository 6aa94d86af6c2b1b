// The parts of postgres.js that are used, described structurally; the package itself is never imported.
import { types } from "../../core/lazy-builtin.ts";
import { snapshot } from "../../core/snapshot.ts";

export type Handler = ((query: Query) => unknown) & { debug?: unknown };

/** A query is a promise that is sent by its handler when somebody awaits it. */
export interface Query extends Promise<unknown> {
  strings: readonly string[];
  args: unknown[];
  readonly tagged: boolean;
  handler: Handler;
  options: Record<string, unknown>;
  resolve(value: unknown): void;
  reject(error: unknown): void;
  readonly cancelled?: unknown;
  /** `true`: fields as buffers. "values": rows as arrays. */
  isRaw?: true | "values";
  readonly streaming?: boolean;
  readonly cursorFn?: unknown;
  readonly forEachFn?: unknown;
  readonly onlyDescribe?: boolean;
  readonly string?: string;
}

export interface Column {
  readonly name: string;
  readonly table: number;
  readonly number: number;
  readonly type: number;
}

export type Parser = ((text: string) => unknown) & { readonly array?: boolean };

/** An array with more properties. */
export interface Result extends Array<unknown> {
  command: string;
  count: number | null;
  columns: readonly Column[] | null;
}

type From<Args extends unknown[]> = { readonly from?: (...args: Args) => unknown };

export interface Options {
  readonly host?: readonly string[];
  readonly port?: readonly number[];
  readonly path?: string | false;
  readonly database?: string;
  readonly max?: number;
  onclose?: ((id: number) => void) | undefined;
  readonly parsers: Readonly<Record<number, Parser | undefined>>;
  readonly serializers?: Readonly<Record<number, unknown>>;
  readonly types?: Readonly<Record<string, { readonly serialize?: unknown }>>;
  readonly transform: {
    readonly column: From<[string]>;
    readonly value: From<[unknown, Column]>;
    readonly row: From<[unknown]>;
  };
}

/** A connection of the library, as far as it shows. */
export interface Connection {
  execute(query: Query): unknown;
}

/** `sql` itself, or that of a transaction or a reserved connection, which has no options. */
export interface Sql {
  (first: unknown, ...rest: unknown[]): unknown;
  unsafe(text: string, values?: readonly unknown[], options?: object): Query;
  file(path: string, values?: unknown, options?: object): Query;
  begin?(options: string, work: (sql: Sql) => Promise<unknown>): Promise<unknown>;
  reserve?(): Promise<Sql>;
  savepoint?(name: string, work: (sql: Sql) => Promise<unknown>): Promise<unknown>;
  release?(): void;
  end?(options?: unknown): Promise<void>;
  readonly options?: Options;
}

export function isSql(session: object): session is Sql {
  if (typeof session !== "function") return false;
  const found = session as unknown as Record<string, unknown>;
  const methods = ["unsafe", "file", "typed", "array", "json", "notify"];
  return methods.every((name) => typeof found[name] === "function");
}

export function isQuery(value: unknown): value is Query {
  return types.isPromise(value) && "handler" in value && "strings" in value && "args" in value;
}

type Builder = {
  first: unknown;
  rest: unknown;
  build(before: string, values: unknown[], types: unknown[], options: object): unknown;
};
type Parameter = { value: unknown; readonly type?: unknown };

const isObject = (value: unknown): value is object => typeof value === "object" && value !== null;
const isBuilder = (value: unknown): value is Builder =>
  isObject(value) && typeof (value as Partial<Builder>).build === "function";
/** Thrown together by the library for `sql.typed`, `sql.json` and `sql.array`. */
const isParameter = (value: unknown): value is Parameter =>
  isObject(value) && value.constructor.name === "Parameter" && "value" in value;
const isIdentifier = (value: unknown): value is { readonly value: string } =>
  isObject(value) && value.constructor.name === "Identifier" && "value" in value;

/** Copies what a query is made of: what is sent later must be what the key is made of now. */
export function freeze(query: Query): void {
  query.args = query.args.map(frozen);
}

function frozen(value: unknown): unknown {
  if (isQuery(value)) freeze(value);
  else if (isBuilder(value))
    Object.assign(value, { first: snapshot(value.first), rest: snapshot(value.rest) });
  else if (isParameter(value)) value.value = snapshot(value.value);
  else if (Array.isArray(value) && value.some(isQuery)) return value.map(frozen);
  else return snapshot(value);
  return value;
}

/** Without options no text differs but in the names of columns. */
const NO_OPTIONS: Options = { parsers: {}, transform: { column: {}, value: {}, row: {} } };

/** The text that a query sends, and what determines its values. undefined: the library will refuse it. */
export function built(
  query: Query,
  options: Options = NO_OPTIONS,
): { readonly text: string; readonly values: readonly unknown[] } | undefined {
  const [values, types]: [unknown[], unknown[]] = [[], []];
  const placeholder = (value: unknown): string => {
    const [sent, type] = isParameter(value) ? [value.value, value.type] : [value, undefined];
    values.push(sent);
    return `$${types.push(type ?? 0)}`;
  };
  const part = (before: string, value: unknown): string => {
    if (isBuilder(value)) return String(value.build(before, values, types, options));
    if (isQuery(value)) return joined(value);
    if (isIdentifier(value)) return value.value;
    if (Array.isArray(value) && isQuery(value[0])) return value.map((each) => ` ${joined(each)}`).join("");
    return placeholder(value);
  };
  const joined = ({ strings, args }: Query): string => {
    let text = strings[0] ?? "";
    for (let at = 1; at < strings.length; at++) text += part(text, args[at - 1]) + strings[at];
    return text;
  };
  try {
    const text = joined(query);
    if (!query.tagged) query.args.forEach(placeholder);
    return { text, values: values.length === 0 ? [] : [...values, types.join(), writersOf(options)] };
  } catch {
    return undefined;
  }
}

/** How values of the application's own types are written. Functions are told apart by their source. */
function writersOf({ types = {} }: Options): string {
  return Object.entries(types)
    .map(([name, { serialize }]) => `${name}:${serialize}`)
    .join();
}
