// Replies are parsed the same however the network splits them, and anything else is rejected.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MetaReader } from "../../../src/backends/memcached/meta-reader.ts";

interface Emitted {
  readonly code: string;
  readonly text: string;
  readonly value: string;
  readonly opaque: number;
  readonly cas: string;
}

/** Everything the reader emits for these pieces. */
function emittedFor(...pieces: readonly Buffer[]): Emitted[] {
  const emitted: Emitted[] = [];
  const reader = new MetaReader(({ code, text, bytes, start, end, opaque, cas }) =>
    emitted.push({ code, text, value: bytes.toString("latin1", start, end), opaque, cas }),
  );
  for (const piece of pieces) reader.feed(piece);
  return emitted;
}

const latin1 = (text: string): Buffer => Buffer.from(text, "latin1");
const plain = { text: "", value: "", opaque: -1, cas: "" };

const SAMPLE = [
  "VA 5 O12 c18446744073709551615\r\nab\r\nc\r\n",
  "VA 0\r\n\r\n",
  "HD c7\r\n",
  "EN\r\nMN\r\nEX\r\nNF O3\r\n",
  "STAT time 1700000000\r\nEND\r\n",
  "SERVER_ERROR out of memory storing object\r\n",
  "ERROR\r\n",
  `VA 3000 O1\r\n${"\r\n".repeat(1_500)}\r\n`,
].join("");

const SAMPLE_EMITTED: readonly Emitted[] = [
  { ...plain, code: "VA", value: "ab\r\nc", opaque: 12, cas: "18446744073709551615" },
  { ...plain, code: "VA" },
  { ...plain, code: "HD", cas: "7" },
  { ...plain, code: "EN" },
  { ...plain, code: "MN" },
  { ...plain, code: "EX" },
  { ...plain, code: "NF", opaque: 3 },
  { ...plain, code: "STAT", text: "time 1700000000" },
  { ...plain, code: "END" },
  { ...plain, code: "SERVER_ERROR", text: "out of memory storing object" },
  { ...plain, code: "ERROR" },
  { ...plain, code: "VA", value: "\r\n".repeat(1_500), opaque: 1 },
];

describe("replies", () => {
  it("are emitted one by one, with values as bytes", () => {
    expect(emittedFor(latin1(SAMPLE))).toEqual(SAMPLE_EMITTED);
  });

  it("are read up to the length given, whatever the memory holds beyond it", () => {
    const emitted: string[] = [];
    const reader = new MetaReader(({ code, text }) => emitted.push(`${code} ${text}`.trim()));
    reader.feed(latin1("HD\r\nSTAT a b\r\nEN\r\n"), 12);
    reader.feed(latin1(" c\r\nHD\r\n"), 4);
    expect(emitted).toEqual(["HD", "STAT a b c"]);
  });

  it("keep the memory that they arrived in only if a value in it was passed on", () => {
    const reader = new MetaReader(() => {});
    expect(reader.feed(latin1("HD\r\nEN\r\nSTAT time 1\r\nVA 5 O1"))).toBe(false);
    expect(reader.feed(latin1("\r\nab"))).toBe(false);
    expect(reader.feed(latin1("cde\r\nHD\r\n"))).toBe(false);
    expect(reader.feed(latin1("HD\r\nVA 2\r\nab\r\nHD\r\n"))).toBe(true);
    expect(reader.feed(latin1("HD\r\n"))).toBe(false);
  });

  it("are the same byte by byte", () => {
    expect(emittedFor(...[...SAMPLE].map(latin1))).toEqual(SAMPLE_EMITTED);
  });

  it("are the same however they are split", () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: SAMPLE.length }), { maxLength: 12 }), (cuts) => {
        const ends = [...cuts, SAMPLE.length].sort((a, b) => a - b);
        const pieces = ends.map((end, at) => latin1(SAMPLE.slice(at === 0 ? 0 : ends[at - 1], end)));
        expect(emittedFor(...pieces)).toEqual(SAMPLE_EMITTED);
      }),
    );
  });

  it("of several megabytes are assembled from many pieces", () => {
    const value = Buffer.alloc(3_000_000, "xyz");
    const whole = Buffer.concat([latin1(`VA ${value.length}\r\n`), value, latin1("\r\nMN\r\n")]);
    const pieces = Array.from({ length: 50 }, (_, at) => whole.subarray(at * 60_001, (at + 1) * 60_001));
    expect(emittedFor(...pieces).map(({ code, value: text }) => [code, text.length])).toEqual([
      ["VA", value.length],
      ["MN", 0],
    ]);
  });
});

describe("anything that is not a reply", () => {
  it.each([
    "-ERR unknown command 'stats'\r\n",
    "HTTP/1.1 400 Bad Request\r\n",
    "VALUE k 0 1\r\n",
    "VA x\r\n",
    "VA \r\n",
    "VA 99999999999\r\n",
    "VA 2\r\nabcd\r\n",
    "HD c1x\r\n",
    "VA 1 Ox\r\na\r\n",
    "HD\n",
    "\r\n",
    "\n",
    "HDD\r\n",
    "hd\r\n",
    "\x15\x03\x01\x00\x02\x02\x28\r\n",
    "x".repeat(9_000),
  ])("is rejected: %j", (text) => {
    expect(() => emittedFor(latin1(text))).toThrow();
  });

  it("is rejected or awaited, never a crash or a value, whatever the bytes", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        try {
          for (const { code } of emittedFor(Buffer.from(bytes))) expect(code).not.toBe("VA");
        } catch (error) {
          expect((error as Error).message).toMatch(/^an? /);
        }
      }),
    );
  });
});
