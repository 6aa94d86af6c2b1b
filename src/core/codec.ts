// What the core asks of a codec: values to bytes and back, and private copies for the in-process tiers.
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
