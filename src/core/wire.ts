// The one mapping between names in code (camelCase) and names on the wire (snake_case), in types and in values.

type UpperLetter =
  | ("A" | "B" | "C" | "D" | "E" | "F" | "G" | "H" | "I" | "J" | "K" | "L" | "M")
  | ("N" | "O" | "P" | "Q" | "R" | "S" | "T" | "U" | "V" | "W" | "X" | "Y" | "Z");

/** `defaultTtl` becomes `default_ttl`. */
export type SnakeCase<Name extends string, Done extends string = ""> = string extends Name
  ? string
  : Name extends `${infer First}${infer Rest}`
    ? SnakeCase<Rest, First extends UpperLetter ? `${Done}_${Lowercase<First>}` : `${Done}${First}`>
    : Done;

/** `default_ttl` becomes `defaultTtl`. */
export type CamelCase<Name extends string, Done extends string = ""> = string extends Name
  ? string
  : Name extends `_${infer Letter}${infer Rest}`
    ? Uppercase<Letter> extends UpperLetter
      ? CamelCase<Rest, `${Done}${Uppercase<Letter>}`>
      : CamelCase<`${Letter}${Rest}`, `${Done}_`>
    : Name extends `${infer First}${infer Rest}`
      ? CamelCase<Rest, `${Done}${First}`>
      : `${Done}${Name}`;

/** Copied unchanged: anything that is not a plain record or a list. */
type Leaf =
  | (string | number | boolean | bigint | symbol | null | undefined)
  | ((...args: never) => unknown)
  | (Date | RegExp | Error | ArrayBufferView)
  | (ReadonlyMap<unknown, unknown> | ReadonlySet<unknown>);

/** A record as it is on the wire. Maps whose keys the user chose (`Record<string, unknown>`) keep their keys. */
export type Wire<T> = T extends Leaf
  ? T
  : T extends readonly unknown[]
    ? { [K in keyof T]: Wire<T[K]> }
    : { [K in keyof T as K extends string ? SnakeCase<K> : K]: Wire<T[K]> };

/** A record from the wire as it is in code. */
export type Unwire<T> = T extends Leaf
  ? T
  : T extends readonly unknown[]
    ? { [K in keyof T]: Unwire<T[K]> }
    : { [K in keyof T as K extends string ? CamelCase<K> : K]: Unwire<T[K]> };

/** The properties, at any depth, that hold a map whose keys the user chose. */
export type UserMaps<T> = T extends Leaf
  ? never
  : T extends readonly (infer Item)[]
    ? UserMaps<Item>
    : {
        [K in keyof T]-?:
          | (string extends keyof NonNullable<T[K]> ? K & string : never)
          | UserMaps<NonNullable<T[K]>>;
      }[keyof T];

/** A record with such maps must name them, since values do not show which keys are the user's. */
type MapNames<T> = [UserMaps<T>] extends [never] ? [] : [userMaps: readonly UserMaps<T>[]];

export const toSnake = <const Name extends string>(name: Name): SnakeCase<Name> =>
  name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`) as SnakeCase<Name>;

export const toCamel = <const Name extends string>(name: Name): CamelCase<Name> =>
  name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()) as CamelCase<Name>;

/** Whether a value is a record of fields rather than an instance of something. */
export function isPlainRecord(value: unknown): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  // The second test also accepts plain objects of other realms.
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

function rename(value: unknown, respell: (name: string) => string, kept: readonly string[]): unknown {
  if (Array.isArray(value)) return value.map((item) => rename(item, respell, kept));
  if (!isPlainRecord(value)) return value;
  // fromEntries defines own properties, so a `__proto__` key stays a key.
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [
      respell(name),
      kept.includes(name) && isPlainRecord(member)
        ? Object.fromEntries(Object.entries(member).map(([key, item]) => [key, rename(item, respell, kept)]))
        : rename(member, respell, kept),
    ]),
  );
}

/** A copy with every field name in snake_case, at any depth; `userMaps` names the fields whose keys are the user's. */
export function toWire<T>(record: T, ...[userMaps]: MapNames<T>): Wire<T> {
  return rename(record, toSnake, userMaps ?? []) as Wire<T>;
}

/** The inverse of `toWire`; `userMaps` in snake_case. */
export function fromWire<W>(record: W, ...[userMaps]: MapNames<W>): Unwire<W> {
  return rename(record, toCamel, userMaps ?? []) as Unwire<W>;
}
