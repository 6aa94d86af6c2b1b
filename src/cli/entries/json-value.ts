// Lossless conversion of values to JSON and back; what JSON cannot represent becomes {"$type": ..., "value": ...}.
import { createCodec } from "../../codec/codec.ts";
import { isPlainRecord } from "../../core/wire.ts";

const TYPE = "$type";
const codec = createCodec({ serialization: "msgpack", compression: false });

const typed = (type: string, value: unknown): unknown => ({ [TYPE]: type, value });

export function toJson(value: unknown): unknown {
  if (value === null || typeof value === "string" || typeof value === "boolean") return value;
  if (value === undefined) return typed("undefined", null);
  if (typeof value === "number") {
    return Number.isFinite(value) && !Object.is(value, -0) ? value : typed("number", numberText(value));
  }
  if (typeof value === "bigint") return typed("bigint", String(value));
  if (Array.isArray(value) && isDense(value)) return value.map(toJson);
  if (value instanceof Date && Number.isFinite(value.getTime())) return typed("date", value.toISOString());
  if (value instanceof Map)
    return typed(
      "map",
      [...value].map(([key, item]) => [toJson(key), toJson(item)]),
    );
  if (value instanceof Set) return typed("set", [...value].map(toJson));
  if (Buffer.isBuffer(value)) return typed("buffer", value.toString("base64"));
  if (isPlainRecord(value)) {
    const members = Object.fromEntries(Object.entries(value).map(([name, item]) => [name, toJson(item)]));
    return Object.hasOwn(value, TYPE) ? typed("object", members) : members;
  }
  return encoded(value);
}

/** Other values, such as typed arrays and errors, in the store's own encoding. */
function encoded(value: unknown): unknown {
  const { format, bytes } = codec.encode(value);
  return typed("encoded", { format, bytes: Buffer.from(bytes).toString("base64") });
}

const numberText = (value: number): string => (Object.is(value, -0) ? "-0" : String(value));

/** Neither holes nor extra properties. */
const isDense = (list: readonly unknown[]): boolean => Object.keys(list).length === list.length;

/** Throws Error with the reason. */
export function fromJson(json: unknown): unknown {
  if (Array.isArray(json)) return json.map(fromJson);
  if (typeof json !== "object" || json === null) return json;
  if (!Object.hasOwn(json, TYPE)) return members(json);
  const { [TYPE]: type, value } = json as { [TYPE]: unknown; value?: unknown };
  const read = READERS[String(type)];
  if (read === undefined) throw new Error(`unknown ${TYPE} ${JSON.stringify(type)}`);
  return read(value);
}

const members = (json: object): unknown =>
  Object.fromEntries(Object.entries(json).map(([name, item]) => [name, fromJson(item)]));

const READERS: Readonly<Record<string, ((value: unknown) => unknown) | undefined>> = {
  __proto__: null as never,
  undefined: () => undefined,
  number: (value) => Number(value),
  bigint: (value) => BigInt(String(value)),
  date: (value) => new Date(String(value)),
  map: (value) => new Map(listOf(value).map((pair) => listOf(pair).map(fromJson) as [unknown, unknown])),
  set: (value) => new Set(listOf(value).map(fromJson)),
  buffer: (value) => Buffer.from(String(value), "base64"),
  object: (value) => members(Object(value)),
  encoded: (value) => {
    const { format, bytes } = Object(value) as { format?: unknown; bytes?: unknown };
    return codec.decode({ format: Number(format), bytes: Buffer.from(String(bytes), "base64") });
  },
};

function listOf(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  throw new Error(`expected an array as the value of ${TYPE}`);
}
