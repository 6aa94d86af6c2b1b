import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { CodecError } from "../../../src/core/errors.ts";
import {
  decodeHeader,
  decodeRecord,
  encodeRecord,
  HEAD_LENGTH,
  headOf,
  INCOMPLETE,
  VERSION_OFFSET,
} from "../../../src/core/frame/frame.ts";
import { checkOf } from "../../../src/core/frame/frame-reader.ts";
import type { Entry, Lease, Payload, Stamp, StoreRecord } from "../../../src/core/record.ts";

const TOKEN = "\u0000\u00ff345678";

const entry: Entry = {
  kind: "entry",
  version: TOKEN,
  key: "user:1",
  created: 1_732_000_000_000,
  expires: 1_732_000_300_000,
  staleUntil: 1_732_000_300_000,
  namespaceStamps: ["stamp_n1"],
  tags: [],
  payload: { format: 0, bytes: Buffer.from("payload") },
};
const lease: Lease = {
  kind: "lease",
  version: TOKEN,
  key: "user:1",
  expires: 1_732_000_030_000,
  namespaceStamps: ["stamp_n1"],
  tags: [{ tag: "users", id: "users_id" }],
};
const stamp: Stamp = { kind: "stamp", version: TOKEN, expires: Infinity };

const anyToken = fc
  .uint8Array({ minLength: 8, maxLength: 8 })
  .map((bytes) => Buffer.from(bytes).toString("latin1"));
const anyTime = fc.oneof(fc.integer({ min: 0, max: 2 ** 48 - 1 }), fc.constant(2 ** 48 - 1));
const anyExpiry = fc.oneof(anyTime, fc.constant(Infinity));
const anyName = fc.oneof(
  fc.string({ unit: "grapheme-ascii", minLength: 1 }),
  fc.string({ minLength: 1, maxLength: 100 }),
  fc
    .array(fc.integer({ min: 0, max: 0xffff }), { minLength: 1 })
    .map((units) => String.fromCharCode(...units)),
  fc.constantFrom("\ud800", "x".repeat(63), "x".repeat(64), "é".repeat(40), "k".repeat(65_536)),
);
const anySeal = {
  namespaceStamps: fc.array(anyToken, { maxLength: 5 }),
  tags: fc.array(fc.record({ tag: anyName, id: anyToken }), { maxLength: 5 }),
};
const anyEntry: fc.Arbitrary<Entry> = fc
  .record({
    version: anyToken,
    key: anyName,
    created: anyTime,
    times: fc.tuple(anyExpiry, anyExpiry),
    ...anySeal,
    format: fc.integer({ min: 0, max: 255 }),
    bytes: fc.uint8Array(),
  })
  .map(({ times, format, bytes, ...rest }) => ({
    kind: "entry",
    ...rest,
    expires: Math.min(...times),
    staleUntil: Math.max(...times),
    payload: { format, bytes: Buffer.from(bytes) },
  }));
const anyLease: fc.Arbitrary<Lease> = fc
  .record({
    version: anyToken,
    expires: anyExpiry,
    ...anySeal,
    behind: fc.option(anyEntry, { nil: undefined }),
    key: anyName,
  })
  .map(({ behind, ...rest }) =>
    behind === undefined
      ? { kind: "lease", ...rest }
      : { kind: "lease", ...rest, behind: { ...behind, key: rest.key } },
  );
const anyStamp: fc.Arbitrary<Stamp> = fc
  .record({ version: anyToken, expires: anyExpiry })
  .map((fields) => ({ kind: "stamp", ...fields }));
const anyRecord: fc.Arbitrary<StoreRecord> = fc.oneof(anyEntry, anyLease, anyStamp);

const keyOf = (record: StoreRecord): string => (record.kind === "stamp" ? "any" : record.key);

/** With payloads as separate objects, made from their bytes by `bytesOf`. */
function withPayload(record: StoreRecord, bytesOf: (payload: Payload) => Buffer): StoreRecord {
  if (record.kind === "entry") {
    const { format } = record.payload;
    return { ...record, payload: { format, bytes: bytesOf(record.payload) } };
  }
  if (record.kind === "lease" && record.behind !== undefined) {
    return { ...record, behind: withPayload(record.behind, bytesOf) as Entry };
  }
  return record;
}

const withoutPayload = (record: StoreRecord): StoreRecord => withPayload(record, () => Buffer.alloc(0));
const whole = (record: StoreRecord | undefined): StoreRecord | undefined =>
  record && withPayload(record, ({ bytes }) => Buffer.from(bytes));

/**
 * The code of the CodecError that `act` throws; any other error fails the test. It is called tens of thousands of times,
 * so it avoids `expect` and stack traces, which took nearly all of the time.
 */
function codeOf(act: () => unknown): string | undefined {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    act();
  } catch (error) {
    if (error instanceof CodecError) return error.code;
    throw error;
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
  return undefined;
}

/** For thousands of comparisons: `expect` is slow, so it runs only to report a difference. */
function expectEqual(actual: unknown, expected: unknown): void {
  if (!isDeepStrictEqual(actual, expected)) expect(actual).toEqual(expected);
}

describe("round trip", () => {
  test("every record is restored exactly, with and without its key", () => {
    fc.assert(
      fc.property(anyRecord, fc.boolean(), (record, withKey) => {
        expectEqual(whole(decodeRecord(encodeRecord(record, { withKey }), keyOf(record))), record);
      }),
      { numRuns: 500 },
    );
  });

  test("a frame can be any part of a larger array", () => {
    fc.assert(
      fc.property(anyRecord, (record) => {
        const frame = encodeRecord(record, { withKey: true });
        const around = new Uint8Array(frame.length + 9);
        around.set(frame, 4);
        const read = decodeRecord(around.subarray(4, 4 + frame.length), keyOf(record)) as StoreRecord;
        expect(withoutPayload(read)).toEqual(withoutPayload(record));
        expect(whole(decodeRecord(around, keyOf(record), 4, 4 + frame.length))).toEqual(whole(read));
        if (record.kind === "entry")
          expect(Buffer.from((read as Entry).payload.bytes)).toEqual(record.payload.bytes);
      }),
      { numRuns: 100 },
    );
  });

  test("fractions of a millisecond are dropped, so that nothing outlives its expiry", () => {
    const read = decodeRecord(
      encodeRecord({ ...entry, created: 1.9, expires: 5.99, staleUntil: 7.5 }),
      "user:1",
    );
    expect(read).toMatchObject({ created: 1, expires: 5, staleUntil: 7 });
  });

  test("a time out of range becomes the nearest one in range", () => {
    const read = decodeRecord(
      encodeRecord({ ...entry, created: -5, expires: 2 ** 50, staleUntil: 2 ** 51 }),
      "user:1",
    );
    expect(read).toMatchObject({ created: 0, expires: 2 ** 48 - 1, staleUntil: 2 ** 48 - 1 });
  });

  test("the payload is a view of the frame, not a copy", () => {
    const frame = encodeRecord(entry);
    const read = decodeRecord(frame, "user:1") as Entry;
    expect(read.payload.bytes.buffer).toBe(frame.buffer);
  });

  test("a token that is not 8 one-byte characters is rejected", () => {
    for (const version of ["short", "123456789", "1234567\u0100", ""]) {
      expect(codeOf(() => encodeRecord({ ...stamp, version }))).toBe("VALUE_UNSUPPORTED");
    }
  });
});

describe("the head", () => {
  test("the first nine bytes of a frame are the head of its record and depend on nothing else", () => {
    fc.assert(
      fc.property(anyRecord, fc.boolean(), (record, withKey) => {
        const frame = encodeRecord(record, { withKey });
        expect(frame.subarray(0, HEAD_LENGTH)).toEqual(headOf(record));
        expect(frame.toString("latin1", VERSION_OFFSET, VERSION_OFFSET + 8)).toBe(record.version);
      }),
    );
  });

  test("records of different kinds or versions have different heads", () => {
    const heads = [entry, lease, stamp, { ...stamp, version: "other_id" }].map((record) =>
      headOf(record).toString("hex"),
    );
    expect(new Set(heads).size).toBe(4);
  });
});

describe("size", () => {
  const overhead = (record: Entry): number => encodeRecord(record).length - record.payload.bytes.length;

  test("an untagged entry with one namespace stamp costs at most 35 bytes", () => {
    expect(overhead(entry)).toBeLessThanOrEqual(35);
  });

  test("two tags of ten characters cost at most 40 bytes", () => {
    const tags = [
      { tag: "users-list", id: TOKEN },
      { tag: "user:12345", id: TOKEN },
    ];
    expect(overhead({ ...entry, tags }) - overhead(entry)).toBeLessThanOrEqual(40);
  });

  test("a stamp takes at most 17 bytes", () => {
    expect(encodeRecord(stamp)).toHaveLength(11);
    expect(encodeRecord({ ...stamp, expires: 5 })).toHaveLength(17);
  });
});

describe("the key", () => {
  test("a frame that carries another key is not the record of this one", () => {
    for (const record of [entry, lease, { ...lease, behind: entry }]) {
      const frame = encodeRecord(record, { withKey: true });
      expect(decodeRecord(frame, "user:2")).toBeUndefined();
      expect(decodeHeader(frame, "user:2")).toBeUndefined();
    }
  });

  test("a frame without a key is the record of whatever key it is stored under", () => {
    expect(whole(decodeRecord(encodeRecord(entry), "user:2"))).toEqual({ ...entry, key: "user:2" });
  });

  test("keys with lone surrogates are distinguished", () => {
    const frame = encodeRecord({ ...entry, key: "\ud800" }, { withKey: true });
    expect(decodeRecord(frame, "\ud800")).toMatchObject({ key: "\ud800" });
    expect(decodeRecord(frame, "\ud801")).toBeUndefined();
    expect(decodeRecord(frame, "\ufffd")).toBeUndefined();
  });
});

describe("reading only the header", () => {
  test('any prefix yields either the whole header or "incomplete", never anything else', () => {
    fc.assert(
      fc.property(anyRecord, (record) => {
        const frame = encodeRecord(record);
        const complete = withoutPayload(record);
        let wasComplete = false;
        const stride = Math.max(1, frame.length >> 6);
        for (let length = 0; length <= frame.length; length += length < 64 ? 1 : stride) {
          const read = decodeHeader(frame.subarray(0, length), keyOf(record));
          if (read === INCOMPLETE) {
            expectEqual(wasComplete, false);
          } else {
            wasComplete = true;
            expectEqual(read, complete);
          }
        }
        expect(decodeHeader(frame, keyOf(record))).toEqual(complete);
      }),
      { numRuns: 100 },
    );
  });
});

describe("damage", () => {
  test("a changed byte is always detected if the layout survives, and almost always otherwise", () => {
    let changes = 0;
    let unnoticed = 0;
    for (const record of [entry, lease, stamp, { ...entry, tags: lease.tags, staleUntil: 2e12 }]) {
      const frame = encodeRecord(record);
      const headerEnd = frame.length - (record.kind === "entry" ? record.payload.bytes.length : 0);
      for (let place = 0; place < headerEnd; place++) {
        for (let change = 1; change < 256; change++) {
          const damaged = Buffer.from(frame);
          damaged[place]! ^= change;
          changes++;
          if (codeOf(() => decodeRecord(damaged, "user:1")) !== undefined) continue;
          unnoticed++;
          // Flags, counts and lengths determine where the check byte is.
          expect(place >= VERSION_OFFSET && place < HEAD_LENGTH).toBe(false);
        }
      }
    }
    expect(changes).toBeGreaterThan(20_000);
    expect(unnoticed).toBeLessThan(changes / 1000);
  });

  test("random and changed bytes yield a record or a CodecError", () => {
    const change = fc.tuple(fc.nat(), fc.integer({ min: 0, max: 255 }));
    fc.assert(
      fc.property(anyRecord, fc.array(change, { maxLength: 4 }), fc.nat(), (record, changes, cut) => {
        const frame = encodeRecord(record, { withKey: true });
        for (const [place, byte] of changes) frame[place % frame.length] = byte;
        codeOf(() => decodeRecord(frame, keyOf(record)));
        codeOf(() => decodeRecord(frame.subarray(0, cut % frame.length), keyOf(record)));
        codeOf(() => decodeHeader(frame, keyOf(record)));
      }),
      { numRuns: 500 },
    );
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 100 }), fc.constantFrom(0x91, 0x92, 0x93), (bytes, first) => {
        codeOf(() => decodeRecord(bytes, "k"));
        codeOf(() => decodeRecord(Buffer.concat([Buffer.from([first]), bytes]), "k"));
      }),
      { numRuns: 1000 },
    );
  });

  test("bytes after the end of a lease or a stamp are rejected", () => {
    for (const record of [lease, stamp]) {
      expect(
        codeOf(() => decodeRecord(Buffer.concat([encodeRecord(record), Buffer.from([0])]), "user:1")),
      ).toBe("FRAME_INVALID");
    }
  });

  test("the record behind a lease must be an entry", () => {
    const whole = encodeRecord({ ...lease, behind: entry });
    const head = whole.subarray(0, whole.length - encodeRecord(entry).length);
    for (const behind of [encodeRecord(lease), encodeRecord(stamp), Buffer.alloc(0)]) {
      expect(codeOf(() => decodeRecord(Buffer.concat([head, behind]), "user:1"))).toBe("FRAME_INVALID");
    }
    const nested = Buffer.concat([...Array.from({ length: 20_000 }, () => head), encodeRecord(entry)]);
    expect(codeOf(() => decodeRecord(nested, "user:1"))).toBe("FRAME_INVALID");
  });

  test("a count larger than the available bytes is rejected before anything is allocated", () => {
    const header = Buffer.concat([Buffer.from([0x92]), Buffer.alloc(8), Buffer.from([0x01])]);
    for (const count of ["ffffff7f", "ffffffff7f", "ff00"]) {
      const before = process.memoryUsage().heapUsed;
      expect(codeOf(() => decodeRecord(Buffer.concat([header, Buffer.from(count, "hex")]), "k"))).toBe(
        "FRAME_INVALID",
      );
      expect(process.memoryUsage().heapUsed - before).toBeLessThan(4_000_000);
    }
  });

  test("a flag that does not apply to this kind of record is rejected", () => {
    for (const [record, flag] of [
      [stamp, 8],
      [stamp, 64],
      [lease, 2],
      [lease, 128],
      [entry, 32],
      [entry, 64],
    ] as const) {
      const frame = encodeRecord(record);
      const headerEnd = frame.length - (record.kind === "entry" ? record.payload.bytes.length : 0) - 1;
      frame[HEAD_LENGTH]! |= flag;
      frame[headerEnd] = checkOf(frame, 0, headerEnd);
      expect(() => decodeRecord(frame, "user:1")).toThrow(/flags/);
    }
  });

  test("no bytes, text and JSON are not frames", () => {
    for (const text of ["", "hello", '{"a":1}', "\u0000"]) {
      expect(codeOf(() => decodeRecord(Buffer.from(text), "k"))).toBe("FRAME_INVALID");
    }
  });

  test("a frame of a newer format is reported with its version, however short it is", () => {
    for (const first of [0xa1, 0xb0, 0xff]) {
      expect(codeOf(() => decodeRecord(Buffer.from([first]), "k"))).toBe("FRAME_VERSION");
      expect(codeOf(() => decodeHeader(Buffer.from([first]), "k"))).toBe("FRAME_VERSION");
    }
    expect(() => decodeRecord(Buffer.from([0xa1]), "k")).toThrow(/format version 2/);
  });
});
