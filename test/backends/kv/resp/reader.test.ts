// Replies are parsed correctly however the network splits them, and bytes that are not RESP end in an error.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { RespReader } from "../../../../src/backends/kv/resp/reader.ts";
import { type Reply, ReplyError, Span } from "../../../../src/backends/kv/resp/reply.ts";
import { encode, meaning, type Sent, stream } from "../../../support/kv/resp-text.ts";

/** What a reader emitted, in order, in the form of `meaning`. */
class Emitted {
  readonly all: unknown[] = [];
  readonly reader: RespReader;

  constructor(takesSpans = false) {
    this.reader = new RespReader({
      reply: (reply) => this.all.push(shown(reply)),
      push: (push) => this.all.push({ push: push.map(shown) }),
      takesSpans: () => takesSpans,
    });
  }
}

function shown(reply: Reply): unknown {
  if (reply instanceof Span) return { hex: reply.bytes.toString("hex", reply.start, reply.end) };
  if (Buffer.isBuffer(reply)) return { hex: reply.toString("hex") };
  if (reply instanceof ReplyError) return { error: reply.message };
  return Array.isArray(reply) ? reply.map(shown) : reply;
}

/** The result is the same whether strings are views or spans; so are the errors. */
function read(...chunks: readonly (string | Buffer)[]): unknown[] {
  const [views, spans] = [false, true].map((takesSpans) => outcomeOf(new Emitted(takesSpans), chunks));
  expect(spans).toEqual(views);
  if (views?.thrown !== undefined) throw views.thrown;
  return views?.all ?? [];
}

function outcomeOf({ all, reader }: Emitted, chunks: readonly (string | Buffer)[]) {
  try {
    for (const chunk of chunks) reader.feed(Buffer.from(chunk as string));
    return { all };
  } catch (thrown) {
    return { all, thrown };
  }
}

const hex = (text: string): unknown => ({ hex: Buffer.from(text).toString("hex") });

/** What the reader emits for `sent`. */
const emitted = (sent: Sent): unknown =>
  sent.kind === "push" ? { push: sent.items.map(meaning) } : meaning(sent);

describe("a reply of type", () => {
  test.each<[string, string, unknown]>([
    ["simple string", "+OK\r\n", "OK"],
    ["simple string that only begins like the commonest", "+OKAY\r\n", "OKAY"],
    ["empty simple string", "+\r\n", ""],
    ["error", "-MOVED 3999 127.0.0.1:6381\r\n", { error: "MOVED 3999 127.0.0.1:6381" }],
    ["bulk error", "!8\r\nERR a\r\nb\r\n", { error: "ERR a\r\nb" }],
    ["integer", ":1042\r\n", 1042],
    ["integer with a sign", ":+7\r\n", 7],
    ["negative integer", ":-3\r\n", -3],
    ["negative zero", ":-0\r\n", 0],
    ["largest exact integer", ":9007199254740991\r\n", Number.MAX_SAFE_INTEGER],
    ["integer that no number holds exactly", ":9223372036854775807\r\n", 9223372036854775807n],
    ["least integer", ":-9223372036854775808\r\n", -9223372036854775808n],
    ["bulk string", "$5\r\na\r\nbc\r\n", hex("a\r\nbc")],
    ["empty bulk string", "$0\r\n\r\n", hex("")],
    ["verbatim text", "=8\r\ntxt:some\r\n", hex("some")],
    ["null", "_\r\n", null],
    ["null string of RESP2", "$-1\r\n", null],
    ["null list of RESP2", "*-1\r\n", null],
    ["boolean, true", "#t\r\n", true],
    ["boolean, false", "#f\r\n", false],
    ["double", ",1.25\r\n", 1.25],
    ["double with an exponent", ",-2.5e-3\r\n", -0.0025],
    ["double without a fraction", ",10\r\n", 10],
    ["infinity", ",inf\r\n", Number.POSITIVE_INFINITY],
    ["negative infinity", ",-inf\r\n", Number.NEGATIVE_INFINITY],
    ["no number", ",nan\r\n", Number.NaN],
    [
      "big number",
      "(3492890328409238509324850943850943825024385\r\n",
      3492890328409238509324850943850943825024385n,
    ],
    ["list", "*2\r\n:1\r\n+a\r\n", [1, "a"]],
    ["empty list", "*0\r\n", []],
    ["set", "~2\r\n:1\r\n:2\r\n", [1, 2]],
    ["map, as keys and values in turn", "%2\r\n+a\r\n:1\r\n+b\r\n:2\r\n", ["a", 1, "b", 2]],
    [
      "list of lists and nulls",
      "*3\r\n*2\r\n_\r\n*0\r\n%1\r\n+k\r\n*1\r\n$1\r\nv\r\n_\r\n",
      [[null, []], ["k", [hex("v")]], null],
    ],
    ["list with an error in it", "*2\r\n-ERR no\r\n+yes\r\n", [{ error: "ERR no" }, "yes"]],
    [
      "list of strings and nulls, as many reads are answered",
      "*6\r\n$1\r\na\r\n_\r\n$0\r\n\r\n$-1\r\n$12\r\n\r\n$3\r\n*2\r\n_\r\r\n$1\r\nz\r\n",
      [hex("a"), null, hex(""), null, hex("\r\n$3\r\n*2\r\n_\r"), hex("z")],
    ],
    [
      "list of strings with others among them",
      "*5\r\n$1\r\na\r\n-ERR no\r\n*0\r\n$1\r\nb\r\n$1\r\nc\r\n",
      [hex("a"), { error: "ERR no" }, [], hex("b"), hex("c")],
    ],
    [
      "push with an empty list before a string",
      ">3\r\n*0\r\n$1\r\na\r\n$1\r\nb\r\n",
      { push: [[], hex("a"), hex("b")] },
    ],
    ["push", ">2\r\n+invalidate\r\n*1\r\n$1\r\nk\r\n", { push: ["invalidate", [hex("k")]] }],
    ["empty push", ">0\r\n", { push: [] }],
  ])("%s is read", (_, text, expected) => {
    expect(read(text)).toEqual([expected]);
    expect(read(...text)).toEqual([expected]);
  });

  test("attribute is dropped, before a reply, within one and when it is empty", () => {
    expect(read("|1\r\n+ttl\r\n:3600\r\n:5\r\n")).toEqual([5]);
    expect(read("*2\r\n|1\r\n+ttl\r\n*1\r\n:1\r\n:5\r\n|0\r\n:6\r\n")).toEqual([[5, 6]]);
    expect(read("|1\r\n+k\r\n+v\r\n>1\r\n+message\r\n+OK\r\n")).toEqual([{ push: ["message"] }, "OK"]);
  });
});

test.each([
  ["MOVED 1 host:1", "MOVED"],
  ["WRONGPASS invalid username-password pair", "WRONGPASS"],
  ["something in small letters", "ERR"],
])("the code of the error %j is %s", (message, code) => {
  expect(new ReplyError(message).code).toBe(code);
});

describe("a stream", () => {
  test("is parsed the same, whole and however it is split", () => {
    fc.assert(
      fc.property(stream, fc.array(fc.nat({ max: 60 }), { maxLength: 30 }), (sent, steps) => {
        const bytes = Buffer.concat(sent.map(encode));
        const expected = sent.map(emitted);
        expect(read(bytes)).toEqual(expected);
        const chunks: Buffer[] = [];
        let at = 0;
        for (const step of steps) {
          chunks.push(bytes.subarray(at, at + step));
          at += step;
        }
        expect(read(...chunks, bytes.subarray(at))).toEqual(expected);
      }),
      { numRuns: 300 },
    );
  });

  test("is parsed the same at every single split and byte by byte", () => {
    fc.assert(
      fc.property(stream, (sent) => {
        const bytes = Buffer.concat(sent.map(encode));
        const expected = sent.map(emitted);
        for (let at = 1; at < Math.min(bytes.length, 200); at++)
          expect(read(bytes.subarray(0, at), bytes.subarray(at))).toEqual(expected);
        expect(read(...Array.from(bytes, (byte) => Buffer.of(byte)))).toEqual(expected);
      }),
      { numRuns: 20 },
    );
  });

  test("with a push between two replies keeps their order", () => {
    const text = "+a\r\n>2\r\n+invalidate\r\n_\r\n*1\r\n:1\r\n";
    expect(read(text)).toEqual(["a", { push: ["invalidate", null] }, [1]]);
  });

  test("of a value larger than the initial buffer arrives complete", () => {
    const value = Buffer.alloc(3_000_000, "abcdefghijk");
    const bytes = Buffer.concat([Buffer.from(`$${value.length}\r\n`), value, Buffer.from("\r\n:1\r\n")]);
    const seen: Reply[] = [];
    const reader = new RespReader({ reply: (reply) => seen.push(reply), push: () => {} });
    for (let at = 0; at < bytes.length; at += 65_536) reader.feed(bytes.subarray(at, at + 65_536));
    expect(seen).toHaveLength(2);
    expect(value.equals(seen[0] as Buffer)).toBe(true);
    expect(seen[1]).toBe(1);
  });

  test("that stops in the middle emits nothing incomplete", () => {
    expect(read("+a\r\n*2\r\n:1\r\n")).toEqual(["a"]);
    expect(read("$5\r\nabcde\r")).toEqual([]);
    expect(read("+OK\r")).toEqual([]);
  });
});

describe("bytes that are not RESP are rejected:", () => {
  test.each([
    ["another protocol", "HTTP/1.1 400 Bad Request\r\n\r\n"],
    ["a TLS alert", Buffer.from([0x15, 3, 3, 0, 2, 2, 40])],
    ["an unknown type", "@1\r\n"],
    ["an unknown type, before its line is complete", "@"],
    ["a string of 10^15 bytes", "$1000000000000000\r\n"],
    ["a string longer than a server allows", "$536870913\r\n"],
    ["a string of a negative length", "$-2\r\n"],
    ["a text of no length", "=-1\r\n"],
    ["an error of no length", "!-1\r\n"],
    ["a list of 10^15 replies", "*1000000000000000\r\n"],
    ["a list of a negative length", "*-2\r\n"],
    ["a map of no length", "%-1\r\n"],
    ["a set of no length", "~-1\r\n"],
    ["a push of no length", ">-1\r\n"],
    ["an attribute of no length", "|-1\r\n"],
    ["a streamed string", "$?\r\n"],
    ["a streamed list", "*?\r\n"],
    ["a length that is not a number", "$abc\r\n"],
    ["a length with a fraction", "$1.5\r\n"],
    ["an empty length", "$\r\n"],
    ["a sign without a number", ":-\r\n"],
    ["a number with endless digits", `:${"1".repeat(30)}`],
    ["a malformed integer", ":1a\r\n"],
    ["a malformed double", ",1.2.3\r\n"],
    ["an empty double", ",\r\n"],
    ["a double in another base", ",0x10\r\n"],
    ["a malformed big number", "(12x\r\n"],
    ["an empty big number", "(\r\n"],
    ["a malformed boolean", "#x\r\n"],
    ["a long boolean", "#true\r\n"],
    ["a null with content", "_x\r\n"],
    ["a string longer than announced", "$3\r\nabcd\r\n"],
    ["a string without a proper end", "$3\r\nabc\r\r"],
    ["a string in a list, longer than it claims", "*3\r\n$1\r\na\r\n$3\r\nabcd\r\n$1\r\nz\r\n"],
    ["a string in a list, without a length", "*3\r\n$1\r\na\r\n$\r\n\r\n$1\r\nz\r\n"],
    ["a null with content in a list", "*3\r\n$1\r\na\r\n_x\r\n$1\r\nz\r\n"],
    ["a verbatim string without its format", "=3\r\nabc\r\n"],
    ["a text with an unmarked kind", "=5\r\ntxtab\r\n"],
    ["a line end without its line feed", "+OK\rx"],
    ["a number whose line end lacks its line feed", ":1\rx"],
    ["lists nested without end", "*1\r\n".repeat(100)],
    ["attributes nested without end", "|1\r\n".repeat(100)],
    ["an endless line", `+${"x".repeat(70_000)}`],
    ["an error without end", `-${"x".repeat(70_000)}`],
  ])("%s", (_, bytes) => {
    expect(() => read(bytes)).toThrow(Error);
    const single = Array.from(Buffer.from(bytes as string), (byte) => Buffer.of(byte));
    // Once is enough for a line of thousands: every byte of it makes a longer copy.
    if (single.length > 10_000) expect(outcomeOf(new Emitted(), single).thrown).toBeInstanceOf(Error);
    else expect(() => read(...single)).toThrow(Error);
  });

  test("an endless line, however small its pieces", () => {
    const emitted = new Emitted();
    const piece = Buffer.from("x".repeat(1_000));
    emitted.reader.feed(Buffer.from("-"));
    expect(() => {
      for (let sent = 0; sent < 100; sent++) emitted.reader.feed(piece);
    }).toThrow("a line longer than 64 KiB");
  });

  test("random bytes end in replies, silence or an error, never in much memory", () => {
    const likely = fc.constantFrom(
      ..."$*:+-_,#(!=%~>|0123456789\r\ntfx?.".split(""),
      "\r\n",
      "$5\r\n",
      "*2\r\n",
    );
    fc.assert(
      fc.property(fc.array(fc.oneof(likely, fc.string()), { maxLength: 40 }), (parts) => {
        const before = process.memoryUsage().arrayBuffers;
        try {
          read(...parts);
        } catch (error) {
          expect(error).toBeInstanceOf(Error);
        }
        expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(16 * 1024 * 1024);
      }),
      { numRuns: 2_000 },
    );
  });
});

test("strings in a push are views, even if the waiting caller takes spans", () => {
  const pushes: (readonly Reply[])[] = [];
  const reader = new RespReader({
    reply: () => {},
    push: (push) => pushes.push(push),
    takesSpans: () => true,
  });
  reader.feed(Buffer.from(">4\r\n*0\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n"));
  expect(pushes[0]?.slice(1).every((item) => Buffer.isBuffer(item))).toBe(true);
});

test("a chunk is retained while a list of spans in it is incomplete, and as long as one of them is kept", () => {
  let keeps = false;
  const reader = new RespReader({ reply: () => keeps, push: () => {}, takesSpans: () => true });
  expect(reader.feed(Buffer.from("*3\r\n$1\r\na\r\n$1\r\nb\r\n"))).toBe(true);
  expect(reader.feed(Buffer.from("$1\r\nc\r\n"))).toBe(false);
  keeps = true;
  expect(reader.feed(Buffer.from("*2\r\n$1\r\na\r\n_\r\n"))).toBe(true);
});

test("a claimed length allocates no more than the bytes that have arrived warrant", () => {
  const before = process.memoryUsage().arrayBuffers;
  const readers = Array.from({ length: 20 }, () => new Emitted().reader);
  for (const reader of readers) reader.feed(Buffer.from("$500000000\r\nabc"));
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(64 * 1024 * 1024);
  const lists = new Emitted();
  lists.reader.feed(Buffer.from("*2000000000\r\n:1\r\n"));
  expect(lists.all).toEqual([]);
});
