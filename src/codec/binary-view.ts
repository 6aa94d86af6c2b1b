// Buffers, typed arrays and DataViews as bytes and back. Multi-byte elements are stored little-endian.
import { onFirstUse } from "../core/lazy-builtin.ts";

interface ViewType {
  readonly bytesPerElement: number;
  make(buffer: ArrayBuffer): ArrayBufferView;
}

interface TypedArrayConstructor {
  readonly BYTES_PER_ELEMENT: number;
  new (buffer: ArrayBuffer): ArrayBufferView;
}

// The positions are stored: append only.
const VIEW_NAMES = [
  "DataView",
  "Uint8Array",
  "Int8Array",
  "Uint8ClampedArray",
  "Uint16Array",
  "Int16Array",
  "Uint32Array",
  "Int32Array",
  "Float32Array",
  "Float64Array",
  "BigUint64Array",
  "BigInt64Array",
  "Float16Array",
] as const;

const viewTypes = onFirstUse((): readonly (ViewType | undefined)[] =>
  VIEW_NAMES.map((name) => {
    if (name === "DataView") return { bytesPerElement: 1, make: (buffer) => new DataView(buffer) };
    const Constructor = (globalThis as unknown as Record<string, TypedArrayConstructor | undefined>)[name];
    if (Constructor === undefined) return undefined;
    return { bytesPerElement: Constructor.BYTES_PER_ELEMENT, make: (buffer) => new Constructor(buffer) };
  }),
);

const HOST_IS_BIG_ENDIAN = new Uint8Array(Uint16Array.of(1).buffer)[0] === 0;

// The getter reads the internal slot, so neither a subclass nor an own property can disguise the type.
const typedArrayName = Object.getOwnPropertyDescriptor(
  Object.getPrototypeOf(Uint8Array.prototype),
  Symbol.toStringTag,
)?.get as (this: unknown) => (typeof VIEW_NAMES)[number] | undefined;

export const VIEW_TYPE_COUNT = VIEW_NAMES.length;

/** The stored number of a view's type. */
export function viewTypeOf(view: ArrayBufferView): number {
  return VIEW_NAMES.indexOf(typedArrayName.call(view) ?? "DataView");
}

/** The bytes in stored order; shares memory with the view unless the host is big-endian. */
export function storedBytesOf(view: ArrayBufferView, viewType: number): Uint8Array {
  const bytes = new Uint8Array(view.buffer as ArrayBuffer, view.byteOffset, view.byteLength);
  const width = viewTypes()[viewType]?.bytesPerElement ?? 1;
  return HOST_IS_BIG_ENDIAN ? swapped(bytes, width) : bytes;
}

/** A view with its own memory; undefined if this Node lacks the type or the length does not fit it. */
export function viewFrom(viewType: number, stored: Uint8Array): ArrayBufferView | undefined {
  const type = viewTypes()[viewType];
  if (type === undefined || stored.length % type.bytesPerElement !== 0) return undefined;
  return type.make(ownMemory(HOST_IS_BIG_ENDIAN ? swapped(stored, type.bytesPerElement) : stored));
}

/** A private ArrayBuffer of exactly these bytes: neither pooled nor part of a larger one. */
export function ownMemory(bytes: Uint8Array): ArrayBuffer {
  const memory = new ArrayBuffer(bytes.length);
  new Uint8Array(memory).set(bytes);
  return memory;
}

/** A Buffer outside the pool: a small one must not keep a large chunk alive. */
export function ownBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(ownMemory(bytes));
}

/** Throws TypeError for a detached buffer, as structuredClone does. */
export function bytesOfBuffer(buffer: ArrayBuffer): Uint8Array {
  return new Uint8Array(buffer);
}

/** A copy with the bytes of every element in reverse order. */
export function swapped(bytes: Uint8Array, width: number): Uint8Array {
  const turned = new Uint8Array(bytes.length);
  for (let start = 0; start < bytes.length; start += width) {
    for (let i = 0; i < width; i++) turned[start + i] = bytes[start + width - 1 - i]!;
  }
  return turned;
}
