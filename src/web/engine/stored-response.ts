// A stored response as a value of the cache. Text, because a string is immutable: the memory store hands it out without a
// copy, and a body that is mostly ASCII takes a byte a character in every store. Other bodies stand beside their head.
import type { HeaderList } from "../message/header-list.ts";

/** A response as it is stored. Times in milliseconds. */
export interface StoredHead {
  readonly status: number;
  readonly message: string;
  /** As they were sent, but for those that belong to one answer only. */
  readonly headers: HeaderList;
  /** When it was made: its age counts from there. */
  readonly bornAt: number;
  readonly lifetimeMs: number;
  readonly staleWhileRevalidateMs: number;
  readonly staleIfErrorMs: number;
  readonly mustRevalidate: boolean;
  /** Whether the handler itself can tell by ETag or Last-Modified that it has not changed. */
  readonly isOwnValidator: boolean;
  /** The handler's Cache-Control where ours stands in its place; empty: it had none. undefined: it is the handler's. */
  readonly ownControl?: string | undefined;
}

/** Says by which request fields the variants of a URL differ; they stand under keys of their own. */
export interface VaryIndex {
  readonly family: string;
  readonly names: readonly string[];
}

/** A value that stands in the cache. */
export type StoredValue = string | { readonly head: string; readonly body: Uint8Array };

/** `R` or `V` and the id. Below 13 characters V8 copies a slice, and does not keep the whole text for it. */
export const MARK_LENGTH = 12;
const RESPONSE = "R";
const INDEX = "V";

/** Bodies with at most one byte in eight beyond ASCII are kept as text. */
const TEXT_SHARE = 8;

/** `id`: 11 characters that no other response has. */
export function encodeResponse(id: string, head: StoredHead, body: Uint8Array): StoredValue {
  const text = `${RESPONSE}${id}${JSON.stringify(head)}\n`;
  if (isMostlyAscii(body)) {
    return text + Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString("latin1");
  }
  return { head: text, body };
}

/** The same body under another head. */
export function encodeAgain(id: string, head: StoredHead, value: StoredValue): StoredValue {
  const text = `${RESPONSE}${id}${JSON.stringify(head)}\n`;
  if (typeof value !== "string") return { head: text, body: value.body };
  return text + value.slice(value.indexOf("\n") + 1);
}

export function encodeIndex(id: string, index: VaryIndex): string {
  return `${INDEX}${id}${JSON.stringify(index)}`;
}

function isMostlyAscii(body: Uint8Array): boolean {
  const most = body.length / TEXT_SHARE;
  let beyond = 0;
  for (const byte of body) if (byte > 127 && ++beyond > most) return false;
  return true;
}

/** The text with the mark at its beginning; undefined when it is not a value of ours. */
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

/** The head, and where in the text the body begins. */
export function decodeHead(text: string): { readonly head: StoredHead; readonly bodyAt: number } {
  const end = text.indexOf("\n");
  return { head: JSON.parse(text.slice(MARK_LENGTH, end)) as StoredHead, bodyAt: end + 1 };
}

/** The body; a string has a byte a character. */
export function bodyOf(value: StoredValue, bodyAt: number): string | Uint8Array {
  return typeof value === "string" ? value.slice(bodyAt) : value.body;
}
