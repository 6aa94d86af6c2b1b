// Writes the fields of a frame. Each function writes at an offset and returns the offset of the next field.
import { PayloadSlice } from "../codec.ts";
import { CodecError } from "../errors.ts";
import type { Payload, TagStamp, Token } from "../record.ts";
import { TIME_LENGTH, TOKEN_LENGTH } from "./frame-fields.ts";

const LATEST_TIME = 2 ** 48 - 1;
const SHORT_TEXT = 63;
/** Up to this many bytes a loop is faster than native calls. */
const SHORT_PAYLOAD = 32;

export function writeToken(out: Buffer, at: number, token: Token): number {
  let union = 0;
  for (let i = 0; i < TOKEN_LENGTH; i++) {
    const unit = token.charCodeAt(i);
    union |= unit;
    out[at + i] = unit;
  }
  if (union > 0xff || token.length !== TOKEN_LENGTH) {
    throw new CodecError(
      "VALUE_UNSUPPORTED",
      `A version or stamp must be 8 one-byte characters; got ${JSON.stringify(token)}.`,
    );
  }
  return at + TOKEN_LENGTH;
}

/** Rounded down, so that nothing outlives its expiry. Times beyond 48 bits, after the year 10000, are clamped. */
export const frameTime = (time: number): number => (time >= 0 ? Math.min(Math.floor(time), LATEST_TIME) : 0);

export function writeTime(out: Buffer, at: number, time: number): number {
  const whole = frameTime(time);
  const high = Math.floor(whole / 2 ** 32);
  out[at] = high >> 8;
  out[at + 1] = high;
  out[at + 2] = whole >>> 24;
  out[at + 3] = whole >>> 16;
  out[at + 4] = whole >>> 8;
  out[at + 5] = whole;
  return at + TIME_LENGTH;
}

export function tokensLength(tokens: readonly Token[]): number {
  return countLength(tokens.length) + tokens.length * TOKEN_LENGTH;
}

export function writeTokens(out: Buffer, start: number, tokens: readonly Token[]): number {
  let at = writeCount(out, start, tokens.length);
  for (const token of tokens) at = writeToken(out, at, token);
  return at;
}

export function tagsLength(tags: readonly TagStamp[]): number {
  let length = countLength(tags.length) + tags.length * TOKEN_LENGTH;
  for (const { tag } of tags) length += textLength(tag);
  return length;
}

export function writeTags(out: Buffer, start: number, tags: readonly TagStamp[]): number {
  let at = writeCount(out, start, tags.length);
  for (const { tag, id } of tags) at = writeToken(out, writeText(out, at, tag), id);
  return at;
}

export function textLength(text: string): number {
  if (isShortAscii(text)) return 1 + text.length;
  const bytes = isWellFormed(text) ? Buffer.byteLength(text) : text.length * 2;
  return countLength(bytes * 2) + bytes;
}

export function writeText(out: Buffer, start: number, text: string): number {
  if (isShortAscii(text)) {
    out[start] = text.length * 2;
    for (let i = 0; i < text.length; i++) out[start + 1 + i] = text.charCodeAt(i);
    return start + 1 + text.length;
  }
  const utf8 = isWellFormed(text);
  const bytes = utf8 ? Buffer.byteLength(text) : text.length * 2;
  const at = writeCount(out, start, bytes * 2 + (utf8 ? 0 : 1));
  return at + out.write(text, at, bytes, utf8 ? "utf8" : "utf16le");
}

export function writePayload(out: Buffer, at: number, payload: Payload): void {
  if (!(payload instanceof PayloadSlice) || payload.end - payload.start > SHORT_PAYLOAD) {
    out.set(payload.bytes, at);
    return;
  }
  const { whole, start, end } = payload;
  const shift = at - start;
  for (let from = start; from < end; from++) out[from + shift] = whole[from] as number;
}

/** The common case, where a loop is faster than native calls; its length takes one byte. */
function isShortAscii(text: string): boolean {
  if (text.length > SHORT_TEXT) return false;
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 0x7f) return false;
  return true;
}

function isWellFormed(text: string): boolean {
  return (text as unknown as { isWellFormed(): boolean }).isWellFormed();
}

function countLength(count: number): number {
  let length = 1;
  for (let rest = count; rest > 0x7f; rest >>>= 7) length++;
  return length;
}

function writeCount(out: Buffer, start: number, count: number): number {
  let at = start;
  let rest = count;
  for (; rest > 0x7f; rest >>>= 7) out[at++] = (rest & 0x7f) | 0x80;
  out[at++] = rest;
  return at;
}
