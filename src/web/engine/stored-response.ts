// The stored form of a response. Text, because strings are immutable: the memory store returns them without copying, and a
// mostly ASCII body takes one byte per character in every store. Other bodies are stored as bytes next to their head.
import { isAscii } from "node:buffer";
import type { HeaderList } from "../message/header-list.ts";

/** The stored head of a response. Times are milliseconds. */
export interface StoredHead {
  readonly status: number;
  readonly message: string;
  /** As sent, without the fields that describe a single response. */
  readonly headers: HeaderList;
  /** When the response was generated: its age counts from here. */
  readonly bornAt: number;
  readonly lifetimeMs: number;
  readonly staleWhileRevalidateMs: number;
  readonly staleIfErrorMs: number;
  readonly mustRevalidate: boolean;
  /** Whether the ETag or Last-Modified is the handler's own, so that the handler can revalidate it. */
  readonly isOwnValidator: boolean;
  /** The handler's Cache-Control if `headers` has ours instead; empty if it had none. Undefined: `headers` has the handler's. */
  readonly ownControl?: string | undefined;
}

/** Names the request fields that select among a URL's variants, which are stored under keys of their own. */
export interface VaryIndex {
  readonly family: string;
  readonly names: readonly string[];
}

/** A value as stored in the cache. */
export type StoredValue = string | { readonly head: string; readonly body: Uint8Array };

/** `R` or `V` and the id. V8 copies slices below 13 characters; a longer one would retain the whole text. */
export const MARK_LENGTH = 12;
const RESPONSE = "R";
const INDEX = "V";

/** Bodies with at most one non-ASCII byte in eight are stored as text. */
const TEXT_SHARE = 8;

/** `id`: 11 characters, unique to this response. */
export function encodeResponse(id: string, head: StoredHead, body: Uint8Array): StoredValue {
  const text = `${RESPONSE}${id}${JSON.stringify(head)}\n`;
  if (isMostlyAscii(body)) {
    return text + Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString("latin1");
  }
  return { head: text, body };
}

/** Encodes the body of `value` with a new head. */
export function encodeAgain(id: string, head: StoredHead, value: StoredValue): StoredValue {
  const text = `${RESPONSE}${id}${JSON.stringify(head)}\n`;
  if (typeof value !== "string") return { head: text, body: value.body };
  return text + value.slice(value.indexOf("\n") + 1);
}

export function encodeIndex(id: string, index: VaryIndex): string {
  return `${INDEX}${id}${JSON.stringify(index)}`;
}

function isMostlyAscii(body: Uint8Array): boolean {
  if (isAscii(body)) return true;
  const most = body.length / TEXT_SHARE;
  let beyond = 0;
  // An iterator would take twenty times as long.
  for (let at = 0; at < body.length; at++) if ((body[at] as number) > 127 && ++beyond > most) return false;
  return true;
}

/** The text that begins with the mark, or undefined if the value was not written by this library. */
export function textOf(value: unknown): string | undefined {
  if (typeof value === "string") return value.length > MARK_LENGTH ? value : undefined;
  const { head, body } = (value ?? {}) as Partial<Exclude<StoredValue, string>>;
  return typeof head === "string" && body instanceof Uint8Array && head.length > MARK_LENGTH
    ? head
    : undefined;
}

export const isIndex = (text: string): boolean => text.startsWith(INDEX);
export const isResponse = (text: string): boolean => text.startsWith(RESPONSE);

export function decodeIndex(text: string): VaryIndex {
  return JSON.parse(text.slice(MARK_LENGTH)) as VaryIndex;
}

/** The head, and the index at which the body begins. */
export function decodeHead(text: string): { readonly head: StoredHead; readonly bodyAt: number } {
  const end = text.indexOf("\n");
  return { head: JSON.parse(text.slice(MARK_LENGTH, end)) as StoredHead, bodyAt: end + 1 };
}

/** The body; a string holds one byte per character (latin1). */
export function bodyOf(value: StoredValue, bodyAt: number): string | Uint8Array {
  return typeof value === "string" ? value.slice(bodyAt) : value.body;
}
