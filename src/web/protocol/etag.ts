// Entity tags (RFC 9110, 8.8.3): computing one from the body, and comparing with a client's.
import { createHash } from "node:crypto";

/** 132 bits: two bodies of one URL do not collide by accident. */
const TAG_LENGTH = 22;

/** A strong tag is only right if no outer middleware, such as compression, changes the bytes. */
export function makeEtag(body: Uint8Array, strength: "weak" | "strong"): string {
  const hash = createHash("sha256").update(body).digest("base64url").slice(0, TAG_LENGTH);
  return strength === "strong" ? `"${hash}"` : `W/"${hash}"`;
}

const opaquePart = (tag: string): string => (tag.startsWith("W/") ? tag.slice(2) : tag);

/** Whether If-None-Match names the tag, by weak comparison (RFC 9110, 13.1.2). */
export function noneMatchHolds(field: string, etag: string): boolean {
  if (field === etag) return true;
  if (field.trim() === "*") return true;
  const wanted = opaquePart(etag);
  return tagsIn(field).some((tag) => opaquePart(tag) === wanted);
}

/** Whether If-Range names exactly this tag, by strong comparison (RFC 9110, 13.1.5). */
export function isSameStrongTag(field: string, etag: string): boolean {
  return field === etag && field.startsWith('"');
}

/** The tags of a list. A comma inside quotes is part of the tag. */
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
