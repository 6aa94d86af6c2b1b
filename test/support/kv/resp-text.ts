// RESP3 written out by the book, for tests of the reader: any reply as a model, its bytes, and what it is read as.
import fc from "fast-check";

/** A reply as the server means it. */
export type Model =
  | { readonly kind: "simple" | "error" | "bulkError"; readonly text: string }
  | { readonly kind: "bulk" | "verbatim"; readonly bytes: Uint8Array }
  | { readonly kind: "integer"; readonly value: bigint }
  | { readonly kind: "bigNumber"; readonly value: bigint }
  | { readonly kind: "double"; readonly value: number }
  | { readonly kind: "boolean"; readonly value: boolean }
  | { readonly kind: "null"; readonly how: "_" | "$-1" | "*-1" }
  | { readonly kind: "list" | "set" | "map"; readonly items: readonly Model[] }
  | { readonly kind: "attributed"; readonly attributes: readonly Model[]; readonly of: Model };

/** A push stands between replies. */
export type Sent = Model | { readonly kind: "push"; readonly items: readonly Model[] };

export function encode(sent: Sent): Buffer {
  switch (sent.kind) {
    case "simple":
      return line(`+${sent.text}`);
    case "error":
      return line(`-${sent.text}`);
    case "bulkError":
      return withLength("!", Buffer.from(sent.text));
    case "bulk":
      return withLength("$", sent.bytes);
    case "verbatim":
      return withLength("=", Buffer.concat([Buffer.from("txt:"), sent.bytes]));
    case "integer":
      return line(`:${sent.value}`);
    case "bigNumber":
      return line(`(${sent.value}`);
    case "double":
      return line(`,${doubleText(sent.value)}`);
    case "boolean":
      return line(sent.value ? "#t" : "#f");
    case "null":
      return line(sent.how);
    case "list":
      return withItems("*", sent.items.length, sent.items);
    case "set":
      return withItems("~", sent.items.length, sent.items);
    case "push":
      return withItems(">", sent.items.length, sent.items);
    case "map":
      return withItems("%", sent.items.length / 2, sent.items);
    case "attributed":
      return Buffer.concat([withItems("|", sent.attributes.length / 2, sent.attributes), encode(sent.of)]);
  }
}

const line = (text: string): Buffer => Buffer.from(`${text}\r\n`);

const withLength = (type: string, bytes: Uint8Array): Buffer =>
  Buffer.concat([line(`${type}${bytes.length}`), bytes, Buffer.from("\r\n")]);

const withItems = (type: string, count: number, items: readonly Model[]): Buffer =>
  Buffer.concat([line(`${type}${count}`), ...items.map(encode)]);

function doubleText(value: number): string {
  if (Number.isNaN(value)) return "nan";
  if (value === Number.POSITIVE_INFINITY) return "inf";
  if (value === Number.NEGATIVE_INFINITY) return "-inf";
  return Object.is(value, -0) ? "-0" : String(value);
}

/** What the reader returns for it, in a comparable form: bytes as hex, errors by message. */
export function meaning(sent: Sent): unknown {
  switch (sent.kind) {
    case "simple":
      return sent.text;
    case "error":
    case "bulkError":
      return { error: sent.text };
    case "bulk":
    case "verbatim":
      return { hex: Buffer.from(sent.bytes).toString("hex") };
    case "integer":
      return Number.isSafeInteger(Number(sent.value)) ? Number(sent.value) : sent.value;
    case "bigNumber":
    case "double":
    case "boolean":
      return sent.value;
    case "null":
      return null;
    case "attributed":
      return meaning(sent.of);
    default:
      return sent.items.map(meaning);
  }
}

const words = fc.string({ unit: "grapheme", maxLength: 20 }).filter((text) => !/[\r\n]/.test(text));
const bytes = fc.uint8Array({ maxLength: 40 });

const { model } = fc.letrec<{ model: Model; pairs: readonly Model[] }>((tie) => ({
  pairs: fc
    .array(fc.tuple(tie("model"), tie("model")), { maxLength: 3, depthIdentifier: "resp" })
    .map((pairs) => pairs.flat()),
  model: fc.oneof(
    { depthIdentifier: "resp", depthSize: "small", withCrossShrink: true },
    fc.record({ kind: fc.constantFrom("simple", "error", "bulkError"), text: words }),
    fc.record({ kind: fc.constantFrom("bulk", "verbatim"), bytes }),
    fc.record({ kind: fc.constant("integer"), value: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }) }),
    fc.record({ kind: fc.constant("bigNumber"), value: fc.bigInt() }),
    fc.record({ kind: fc.constant("double"), value: fc.double() }),
    fc.record({ kind: fc.constant("boolean"), value: fc.boolean() }),
    fc.record({ kind: fc.constant("null"), how: fc.constantFrom("_", "$-1", "*-1") }),
    fc.record({
      kind: fc.constantFrom("list", "set"),
      items: fc.array(tie("model"), { maxLength: 5, depthIdentifier: "resp" }),
    }),
    fc.record({ kind: fc.constant("map"), items: tie("pairs") }),
    fc.record({ kind: fc.constant("attributed"), attributes: tie("pairs"), of: tie("model") }),
  ) as fc.Arbitrary<Model>,
}));

/** Any reply, or a push. */
export const anything: fc.Arbitrary<Sent> = fc.oneof(
  { weight: 8, arbitrary: model },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant("push"), items: fc.array(model, { maxLength: 4 }) }),
  },
) as fc.Arbitrary<Sent>;

const push = fc.record({ kind: fc.constant("push"), items: fc.array(model, { maxLength: 4 }) });

/** Replies with pushes between them. */
export const stream: fc.Arbitrary<readonly Sent[]> = fc.array(
  fc.oneof({ weight: 4, arbitrary: model }, { weight: 1, arbitrary: push }) as fc.Arbitrary<Sent>,
  { minLength: 1, maxLength: 8 },
);
