// Entity tags (RFC 9110, 8.8.3): made from the body, and compared with what a client holds.
import { createHash } from "node:crypto";

/** 132 bits: two bodies of one URL do not share a tag by accident. */
const TAG_LENGTH = 22;

/** Weak unless asked: a compressor further out may change the bytes, and the tag would no longer be theirs. */
export function makeEtag(body: Uint8Array, strength: "weak" | "strong"): string {
  const hash = createHash("sha256").update(body).digest("base64url").slice(0, TAG_LENGTH);
  return strength === "strong" ? `"${hash}"` : `W/"${hash}"`;
}

const opaquePart = (tag: string): string => (tag.startsWith("W/") ? tag.slice(2) : tag);

/** Whether an If-None-Match names the tag; weak comparison (RFC 9110, 13.1.2). */
export function noneMatchHolds(field: string, etag: string): boolean {
  if (field === etag) return true;
  if (field.trim() === "*") return true;
  const wanted = opaquePart(etag);
  return tagsIn(field).some((tag) => opaquePart(tag) === wanted);
}

/** Whether an If-Range names exactly this tag; strong comparison (RFC 9110, 13.1.5). */
export function isSameStrongTag(field: string, etag: string): boolean {
  return field === etag && field.startsWith('"');
}

/** The tags of a list. A comma inside the quotes belongs to the tag. */
function tagsIn(field: string): string[] {
  const tags: string[] = [];
  let start = 0;
  let isQuoted = false;
  for (let at = 0; at <= field.length; at++) {
    const character = field[at];
    if (character === '"') isQuoted = !isQuoted;
    else if (character === undefined || (character === "," && !isQuoted)) {
      tags.push(field.slice(start, at).trim());
      start = at + 1;
    }
  }
  return tags;
}
