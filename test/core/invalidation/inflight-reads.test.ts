import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { PushChannel } from "../../../src/core/backend.ts";
import { InflightReads, type WatchedRead } from "../../../src/core/invalidation/inflight-reads.ts";

/** A channel whose state the test sets. */
function channel(): PushChannel & { state: number } {
  return { state: 1, epoch: (): number => push.state, onChange: () => () => {} };
}
let push = channel();

function watch(): InflightReads {
  push = channel();
  return new InflightReads(push);
}

describe("a value read may be cached", () => {
  it("when nothing happened before the reply", () => {
    const reads = watch();
    expect(reads.end(reads.begin("k"))).toBe(true);
  });

  it("when its key changed before the read began, even if other reads were in flight then", () => {
    const reads = watch();
    const earlier = reads.begin("k");
    reads.invalidate("k");
    const later = reads.begin("k");
    expect(reads.end(later)).toBe(true);
    expect(reads.end(earlier)).toBe(false);
  });

  it("when only other keys changed", () => {
    const reads = watch();
    const read = reads.begin("k");
    reads.invalidate("other");
    expect(reads.end(read)).toBe(true);
  });
});

describe("a value read must not be cached", () => {
  it("when its key changed before the reply, however many reads are in flight", () => {
    const reads = watch();
    const both = [reads.begin("k"), reads.begin("k")];
    reads.invalidate("k");
    expect(both.map((read) => reads.end(read))).toEqual([false, false]);
  });

  it("when everything may have changed", () => {
    const reads = watch();
    const read = reads.begin("k");
    reads.invalidateAll();
    expect(reads.end(read)).toBe(false);
    expect(reads.end(reads.begin("k"))).toBe(true);
  });

  it("when the channel was not trusted, or has been replaced since", () => {
    const reads = watch();
    const read = reads.begin("k");
    push.state = 2;
    expect(reads.end(read)).toBe(false);
    push.state = 0;
    expect(reads.end(reads.begin("k"))).toBe(false);
  });

  it("a second time: the read has ended, and ends no other one", () => {
    const reads = watch();
    const [read, other] = [reads.begin("k"), reads.begin("k")];
    expect(reads.end(read)).toBe(true);
    expect(reads.end(read)).toBe(false);
    reads.invalidate("k");
    expect(reads.end(other)).toBe(false);
  });
});

it("more changed keys than are remembered spoil every read in flight, and none that begins later", () => {
  const reads = watch();
  const read = reads.begin("untouched");
  for (let n = 0; n < 5_000; n++) reads.invalidate(`key ${n}`);
  const later = reads.begin("untouched");
  expect(reads.end(read)).toBe(false);
  expect(reads.end(later)).toBe(true);
});

it("any order of reads and changes is judged as if each read listened on its own", () => {
  const key = fc.constantFrom("a", "b", "c");
  const step = fc.oneof(
    fc.record({ what: fc.constant("begin" as const), key }),
    fc.record({ what: fc.constant("spoil" as const), key }),
    fc.record({ what: fc.constant("end" as const), which: fc.nat() }),
    fc.record({ what: fc.constant("spoilAll" as const) }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const reads = watch();
      let underWay: { read: WatchedRead; isSpoilt: boolean }[] = [];
      for (const one of steps) {
        if (one.what === "begin") underWay.push({ read: reads.begin(one.key), isSpoilt: false });
        else if (one.what === "end") {
          const ended = underWay[one.which % underWay.length];
          if (ended === undefined) continue;
          underWay = underWay.filter((other) => other !== ended);
          expect(reads.end(ended.read)).toBe(!ended.isSpoilt);
        } else {
          if (one.what === "spoil") reads.invalidate(one.key);
          else reads.invalidateAll();
          for (const other of underWay) {
            if (one.what === "spoilAll" || other.read.key === one.key) other.isSpoilt = true;
          }
        }
      }
    }),
  );
});
