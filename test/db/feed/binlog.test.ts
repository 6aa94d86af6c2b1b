// The events of a binary log, byte by byte.
import { crc32 } from "node:zlib";
import { describe, expect, test } from "vitest";
import { EventDecoder } from "../../../src/db/feed/binlog.ts";

const ROTATE = 4;

/** What a server sends first: where the following events are. */
function rotation(position: number, file: string): Buffer {
  const event = Buffer.alloc(27 + file.length);
  event.writeUInt8(ROTATE, 4);
  event.writeBigUInt64LE(BigInt(position), 19);
  event.write(file, 27, "latin1");
  return event;
}

function withChecksum(event: Buffer): Buffer {
  const checksum = Buffer.alloc(4);
  checksum.writeUInt32LE(crc32(event));
  return Buffer.concat([event, checksum]);
}

const POSITIONS = Array.from({ length: 500 }, (_, at) => at + 4);

describe("the first event of a connection names its file", () => {
  test("with a checksum, also where the checksum looks like digits", () => {
    const checked = POSITIONS.map((position) => withChecksum(rotation(position, "log.000001")));
    expect(checked.some((event) => /\d/.test(String.fromCharCode(event[event.length - 4]!)))).toBe(true);
    for (const [at, event] of checked.entries()) {
      expect(new EventDecoder().decode(event)).toEqual({
        kind: "rotate",
        file: "log.000001",
        position: POSITIONS[at],
      });
    }
  });

  test.each(["log.000001", "log.9999999", "a.1b.000012"])("without one: %s", (file) => {
    for (const position of POSITIONS) {
      expect(new EventDecoder().decode(rotation(position, file))).toMatchObject({ file, position });
    }
  });
});
