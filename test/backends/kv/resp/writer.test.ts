// Commands are written as RESP that any server parses exactly, many in one buffer.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { RespReader } from "../../../../src/backends/kv/resp/reader.ts";
import type { Reply } from "../../../../src/backends/kv/resp/reply.ts";
import { type Argument, RespWriter } from "../../../../src/backends/kv/resp/writer.ts";

function written(...commands: readonly (readonly Argument[])[]): Buffer {
  const writer = new RespWriter();
  for (const command of commands) writer.append(command);
  return writer.take();
}

/** The commands that a server parses from these bytes, in hex. */
function understood(bytes: Buffer): string[][] {
  const commands: string[][] = [];
  const reader = new RespReader({
    reply: (reply) => commands.push((reply as Reply[]).map((part) => (part as Buffer).toString("hex"))),
    push: () => {},
  });
  reader.feed(bytes);
  return commands;
}

const meant = (command: readonly Argument[]): string[] =>
  command.map((argument) => Buffer.from(argument as string).toString("hex"));

describe("a command", () => {
  test("is a list of strings with their lengths in bytes", () => {
    const bytes = written(["SET", "k\u00e9y", Buffer.from([0, 13, 10, 255])]);
    expect(bytes.toString("latin1")).toBe(
      "*3\r\n$3\r\nSET\r\n$4\r\nk\u00c3\u00a9y\r\n$4\r\n\0\r\n\u00ff\r\n",
    );
  });

  test("can have an empty argument", () => {
    expect(written(["SET", "", Buffer.alloc(0)]).toString()).toBe("*3\r\n$3\r\nSET\r\n$0\r\n\r\n$0\r\n\r\n");
  });

  test.each([1, 9, 10, 11, 63, 64, 65, 99, 100, 999, 1_000, 16_383, 16_384, 100_000])(
    "can have %i arguments, and as many bytes or characters in one",
    (size) => {
      const many = Array.from({ length: size }, (_, at) => String(at));
      const ascii = "a".repeat(size);
      const wide = "\u00e9".repeat(size);
      const bytes = Buffer.alloc(size, 7);
      const commands = [many, ["A", ascii], ["W", wide], ["B", bytes]];
      expect(understood(written(...commands))).toEqual(commands.map(meant));
    },
  );

  test("is parsed back exactly, whatever it contains and whatever was written before it", () => {
    const argument = fc.oneof(
      fc.string(),
      fc.string({ unit: "grapheme", maxLength: 100 }),
      fc.uint8Array({ maxLength: 300 }),
      fc.nat({ max: 40_000 }).map((size) => "x".repeat(size)),
      fc.nat({ max: 40_000 }).map((size) => Buffer.alloc(size, 1)),
    );
    const command = fc.array(argument, { minLength: 1, maxLength: 6 });
    fc.assert(
      fc.property(fc.array(fc.array(command, { maxLength: 6 }), { maxLength: 6 }), (flushes) => {
        const writer = new RespWriter();
        const taken = flushes.map((commands) => {
          for (const each of commands) writer.append(each);
          return writer.take();
        });
        // Checked only now: taken bytes must not change when more is written.
        expect(taken.map(understood)).toEqual(flushes.map((commands) => commands.map(meant)));
      }),
      { numRuns: 100 },
    );
  });
});

describe("a command of many texts", () => {
  test("equals the command with each text written separately, whatever was written before it", () => {
    const text = fc.oneof(
      fc.string(),
      fc.string({ unit: "grapheme", maxLength: 100 }),
      // Lone surrogates.
      fc.string({ unit: fc.integer({ min: 0xd7f0, max: 0xe010 }).map((unit) => String.fromCharCode(unit)) }),
      fc.nat({ max: 600 }).map((size) => "x".repeat(size)),
    );
    const command = fc.array(text, { maxLength: 40 });
    fc.assert(
      fc.property(fc.array(command, { maxLength: 8 }), (commands) => {
        const [each, together] = [new RespWriter(), new RespWriter()];
        for (const texts of commands) {
          each.append(["MGET", ...texts]);
          together.appendTexts("MGET", texts);
        }
        expect(together.take().equals(each.take())).toBe(true);
      }),
      { numRuns: 500 },
    );
  });

  test.each(["", "\u00e9", "\u{1f600}", "\ud800"])(
    "fits wherever the remaining space ends, with %j as its last character",
    (last) => {
      for (let before = 16_300; before <= 16_384; before++) {
        const writer = new RespWriter();
        writer.append(["SET", "x".repeat(before - "*2\r\n$3\r\nSET\r\n$16300\r\n\r\n".length)]);
        writer.appendTexts("GET", [`key${last}`]);
        const [, command] = understood(writer.take());
        const exact = last === "\ud800" ? "eda080" : Buffer.from(last).toString("hex");
        expect(command?.[1]).toBe(`${Buffer.from("key").toString("hex")}${exact}`);
      }
    },
  );
});

describe("taken bytes", () => {
  test("are no longer in the writer", () => {
    const writer = new RespWriter();
    writer.append(["PING"]);
    expect(understood(writer.take())).toEqual([meant(["PING"])]);
    expect(writer.take()).toHaveLength(0);
  });

  test("stay unchanged over thousands of further commands", () => {
    const writer = new RespWriter();
    const taken = Array.from({ length: 3_000 }, (_, at) => {
      writer.append(["GET", `key-${at}`]);
      return writer.take();
    });
    expect(taken.flatMap(understood)).toEqual(taken.map((_, at) => meant(["GET", `key-${at}`])));
  });
});

describe("an argument that writes its own bytes", () => {
  test("is written in its position", () => {
    const writer = new RespWriter();
    const self = { length: 3, writeTo: (out: Buffer, at: number) => void out.write("abc", at) };
    writer.append(["SET", "k", self, "PX"]);
    expect(understood(writer.take())).toEqual([meant(["SET", "k", "abc", "PX"])]);
  });

  test("leaves no trace of its command when it throws", () => {
    const writer = new RespWriter();
    const refusing = {
      length: 40_000,
      writeTo: () => {
        throw new Error("no");
      },
    };
    writer.append(["GET", "a"]);
    expect(() => writer.append(["SET", "k", refusing])).toThrow("no");
    writer.append(["GET", "b"]);
    expect(understood(writer.take())).toEqual([meant(["GET", "a"]), meant(["GET", "b"])]);
  });
});
