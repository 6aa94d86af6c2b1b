// The codec contract, values to bytes and back with private copies for the in-process tiers; and payloads read in place.
import type { Payload } from "./record.ts";

export interface Codec {
  /** Throws CodecError with the path of a part that cannot be stored. */
  encode(value: unknown): Payload;
  /** Throws CodecError for bytes that are damaged or beyond the limits; never runs code. */
  decode(payload: Payload): unknown;
  /** An equal value that shares nothing mutable with the given one; refuses what `encode` refuses. */
  copy<T>(value: T): T;
  /** The same for a value that `copy` or `decode` made and nobody has changed since; faster, because it checks nothing. */
  copyTrusted<T>(value: T): T;
  /** About how many bytes of memory the value takes. Never throws. */
  sizeOf(value: unknown): number;
}

/** A payload at its place within other bytes, such as a reply of the store: a view of each would be expensive. */
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

/** The length in bytes, without creating a view. */
export function payloadLength(payload: Payload): number {
  return payload instanceof PayloadSlice ? payload.end - payload.start : payload.bytes.length;
}
