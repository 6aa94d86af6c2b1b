// Replies arrive in a reused buffer; bytes that a caller still holds are never overwritten.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { RespReader } from "../../../src/backends/kv/resp/reader.ts";
import { type Reply, ReplyError, Span } from "../../../src/backends/kv/resp/reply.ts";
import { encode, meaning, stream } from "../../support/kv/resp-text.ts";

const GARBAGE = "$-:+*\r\n9";

/** A socket's receive buffer: new bytes overwrite the beginning of the old ones. */
class Memory {
  used = 1;
  #memory = Buffer.alloc(4_096, GARBAGE);
  readonly #reader: RespReader;

  constructor(reader: RespReader) {
    this.#reader = reader;
  }

  /** Returns whether any of the bytes are still held. */
  arrive(bytes: Buffer): boolean {
    bytes.copy(this.#memory);
    const isHeld = this.#reader.feed(this.#memory, bytes.length);
    if (isHeld) {
      this.#memory = Buffer.alloc(4_096, GARBAGE);
      this.used++;
    } else this.#memory.fill(GARBAGE);
    return isHeld;
  }
}

function shown(reply: Reply): unknown {
  if (Buffer.isBuffer(reply)) return { hex: reply.toString("hex") };
  if (reply instanceof Span) return { hex: reply.bytes.toString("hex", reply.start, reply.end) };
  if (reply instanceof ReplyError) return { error: reply.message };
  return Array.isArray(reply) ? reply.map(shown) : reply;
}

function open(takesSpans: boolean, answer: (reply: Reply) => unknown): Memory {
  return new Memory(new RespReader({ reply: answer, push: () => {}, takesSpans: () => takesSpans }));
}

describe("a holder of", () => {
  test.each([
    ["views, without declaring it", false, undefined],
    ["spans", true, undefined],
    ["spans, declaring it", true, true],
  ])("%s sees them unchanged after everything else has arrived", (_, takesSpans, says) => {
    fc.assert(
      fc.property(stream, fc.array(fc.integer({ min: 1, max: 60 })), (sent, steps) => {
        const replies: Reply[] = [];
        const memory = open(takesSpans, (reply) => {
          replies.push(reply);
          return says;
        });
        const bytes = Buffer.concat(sent.map(encode));
        for (let at = 0, step = 0; at < bytes.length; at += steps[step++] ?? 1_000)
          memory.arrive(bytes.subarray(at, at + (steps[step] ?? 1_000)));
        const expected = sent.filter(({ kind }) => kind !== "push").map((one) => meaning(one as never));
        expect(replies.map(shown)).toEqual(expected);
      }),
      { numRuns: 200 },
    );
  });
});

describe("the buffer is reused", () => {
  const values = (count: number): Buffer => Buffer.from("$3\r\nabc\r\n".repeat(count));

  test("while spans are only looked at on arrival", () => {
    const seen: unknown[] = [];
    const memory = open(true, (reply) => {
      seen.push(String(reply));
      return false;
    });
    for (let arrival = 0; arrival < 10; arrival++) expect(memory.arrive(values(3))).toBe(false);
    expect([seen.length, new Set(seen), memory.used]).toEqual([30, new Set(["abc"]), 1]);
  });

  test("while replies contain no bytes that could be held", () => {
    const memory = open(false, () => undefined);
    expect(memory.arrive(Buffer.from("+OK\r\n:1\r\n_\r\n-ERR no\r\n*1\r\n:1\r\n"))).toBe(false);
  });

  test("not after one of several replies was held", () => {
    let at = 0;
    const memory = open(true, () => at++ === 1);
    expect(memory.arrive(values(3))).toBe(true);
    expect(memory.arrive(values(3))).toBe(false);
  });

  test("not while a list waits for the rest of its items", () => {
    const lists: unknown[] = [];
    const memory = open(true, (reply) => {
      lists.push(shown(reply));
      return false;
    });
    expect(memory.arrive(Buffer.from("*2\r\n$1\r\na\r\n"))).toBe(true);
    expect(memory.arrive(Buffer.from("$1\r\nb\r\n"))).toBe(false);
    expect(lists).toEqual([[{ hex: "61" }, { hex: "62" }]]);
  });

  test("after a reply that arrived in two parts, which have buffers of their own", () => {
    const seen: unknown[] = [];
    const memory = open(true, (reply) => {
      seen.push(String(reply));
      return false;
    });
    for (const part of ["$3\r", "\nabc\r\n", "$3\r\na", "bc\r\n", "+O", "K\r\n", "$", "1\r\nx\r\n"])
      expect(memory.arrive(Buffer.from(part))).toBe(false);
    expect(seen).toEqual(["abc", "abc", "OK", "x"]);
  });
});
