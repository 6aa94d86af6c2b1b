// The MessagePack extension types of xcache. The numbers are what is stored: never reuse one.
import { VIEW_TYPE_COUNT } from "./binary-view.ts";

export const EXTENSION = {
  /** One byte, ignored. */
  undefined: 0,
  /** UTF-16LE: only strings with lone surrogates, which UTF-8 cannot carry. */
  text16: 1,
  /** One byte of sign, then the magnitude, most significant byte first: only what int64 and uint64 cannot carry. */
  bigint: 2,
  /** Milliseconds since the epoch as float64; NaN for an invalid date. */
  date: 3,
  /** [source, flags] */
  regexp: 4,
  /** A MessagePack map with keys of any type. */
  map: 5,
  /** A MessagePack array. */
  set: 6,
  /** An array with holes: [length, index, value, index, value, ...] in rising order of the index. */
  sparse: 7,
  /** [name, message or undefined, stack or undefined] and the cause when there is one. */
  error: 8,
  /** The primitive inside a Number, String, Boolean or BigInt object. */
  boxed: 9,
  /** The bytes of an ArrayBuffer. A Buffer is MessagePack's own bin. */
  arrayBuffer: 10,
  /** The first of the view types; see binary-view.ts. */
  firstView: 32,
} as const;

export const LAST_VIEW: number = EXTENSION.firstView + VIEW_TYPE_COUNT - 1;
