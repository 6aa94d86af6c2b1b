// Vary (RFC 9111, 4.1): the request fields that select a response, and the key of the variant that a request selects.
import { createHash } from "node:crypto";
import type { RequestInfo } from "../message/exchange.ts";
import { type HeaderList, linesOf, membersOf } from "../message/header-list.ts";

/** Longer values are hashed: a client must not be able to exceed the key length limit. */
const LONGEST_VALUES = 512;

/** The names in lower case, sorted and unique; undefined for `*`, which no request matches. */
export function varyNames(headers: HeaderList): readonly string[] | undefined {
  const names = new Set(linesOf(headers, "vary").flatMap(membersOf));
  if (names.has("*")) return undefined;
  return [...new Set([...names].map((name) => name.toLowerCase()))].sort();
}

/** Fields whose member order is irrelevant; only the weights count. */
const WEIGHTED = new Set(["accept-encoding", "accept-language", "accept-charset"]);
/** Fields that identify a user: compared byte for byte. */
const EXACT = new Set(["authorization", "cookie", "proxy-authorization"]);

/** The normalized values of the fields as one string. An absent field differs from an empty one. */
function selectingValues(request: RequestInfo, names: readonly string[]): string {
  let text = "";
  for (const name of names) {
    const value = request.header(name);
    if (value === undefined) text += "-";
    else {
      const normal = normalize(name, value);
      text += `${normal.length}:${normal}`;
    }
  }
  return text;
}

/** RFC 9111, 4.1: fields match if they can be transformed into each other without changing their meaning. */
function normalize(name: string, value: string): string {
  if (EXACT.has(name)) return value;
  const members = membersOf(value);
  if (!WEIGHTED.has(name)) return members.join(",");
  return members
    .map((member) =>
      member
        .toLowerCase()
        .replaceAll(/[ \t]/g, "")
        .replace(/;q=1(?:\.0{0,3})?$/, ""),
    )
    .sort()
    .join(",");
}

/** `family` changes when the URL is invalidated, which makes the old variants unreachable. */
export function variantKey(
  key: string,
  family: string,
  names: readonly string[],
  request: RequestInfo,
): string {
  const values = selectingValues(request, names);
  const shown =
    values.length <= LONGEST_VALUES ? values : `#${createHash("sha256").update(values).digest("base64url")}`;
  return `${key}\n${family}\n${shown}`;
}
