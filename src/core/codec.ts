// The codec contract, values to bytes and back with private copies for the in-process tiers; and payloads read in place.
import type { Payload } from "./record.ts";

/** The first part of a value. */
export interface Beginning {
  /** Containers have fewer members, and texts fewer characters, than the value itself. */
  readonly value: unknown;
  /** How many members the value itself has, if it is a container and that is known. */
  readonly members?: number;
  /** Nothing is missing. */
  readonly isWhole: boolean;
}

/** Private copies of values, for what is kept in the process. */
export interface Copier {
  /** As `copyTrusted`, of no more than the first `most` characters, bytes and members together. */
  copyBeginning(value: unknown, most: number): Beginning;
  /** A deep copy that shares nothing mutable with the original; rejects what `encode` rejects. */
  copy<T>(value: T): T;
  /** As `copy`, for a value made by `copy` or `decode` and not modified since; faster, because nothing is checked. */
  copyTrusted<T>(value: T): T;
  /** Approximate memory use of the value in bytes. Never throws. */
  sizeOf(value: unknown): number;
}

export interface Codec extends Copier {
  /** Throws CodecError with the path of a part that cannot be stored. */
  encode(value: unknown): Payload;
  /** Throws CodecError for bytes that are damaged or exceed the limits; never runs code. */
  decode(payload: Payload): unknown;
  /**
   * Decodes the beginning of a value from that of its payload, which `isWhole` says is all of it. `most`: the most bytes
   * that are unpacked from a compressed one. Throws CodecError.
   */
  decodeBeginning(payload: Payload, isWhole: boolean, most: number): Promise<Beginning>;
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
