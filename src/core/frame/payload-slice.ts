// A payload where it lies within other bytes, such as a reply of the store: read in place, because views are dear.
import type { Payload } from "../record.ts";

export class PayloadSlice implements Payload {
  readonly format: number;
  readonly whole: Uint8Array;
  readonly start: number;
  readonly end: number;

  constructor(format: number, whole: Uint8Array, start: number, end: number) {
    this.format = format;
    this.whole = whole;
    this.start = start;
    this.end = end;
  }

  get bytes(): Uint8Array {
    return this.whole.subarray(this.start, this.end);
  }
}

/** Without a view of them: how many bytes it has. */
export function payloadLength(payload: Payload): number {
  return payload instanceof PayloadSlice ? payload.end - payload.start : payload.bytes.length;
}
