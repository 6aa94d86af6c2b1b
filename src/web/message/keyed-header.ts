// Request fields that are always part of the key: frameworks and handlers answer differently because of them, and a client may
// send any value.
import { createHash } from "node:crypto";
import type { RequestInfo } from "./exchange.ts";

const X = "x".charCodeAt(0);
const LONGEST = 256;

/**
 * Whether the field is part of every key: what a proxy says about host, scheme, port and path, and the mark of a request by a
 * script. The addresses of X-Forwarded-For are not: every client has another one. `name` is in lower case.
 */
export function isKeyField(name: string): boolean {
  if (name.charCodeAt(0) !== X) return false;
  return name === "x-requested-with" || (name.startsWith("x-forwarded-") && name !== "x-forwarded-for");
}

/** The key fields of a request with their values as one string; empty if it has none. */
export function selectorsOf(request: Pick<RequestInfo, "header" | "headerNames">): string {
  let text = "";
  for (const name of [...request.headerNames()].filter(isKeyField).sort()) {
    const value = request.header(name) ?? "";
    text += `${name}:${value.length}:${value}`;
  }
  return text.length <= LONGEST ? text : `#${createHash("sha256").update(text).digest("base64url")}`;
}
