// Vary (RFC 9111, 4.1): which request fields a response was selected by, and the key of the variant that a request selects.
import { createHash } from "node:crypto";
import type { RequestFacts } from "../message/exchange.ts";
import { type HeaderList, linesOf, membersOf } from "../message/header-list.ts";

/** Longer lists of values are hashed: a key has to stay a key, whatever a client sends. */
const LONGEST_VALUES = 512;

/** The names in lower case, sorted, once each; undefined for `*`, which no request ever matches. */
export function varyNames(headers: HeaderList): readonly string[] | undefined {
  const names = new Set(linesOf(headers, "vary").flatMap(membersOf));
  if (names.has("*")) return undefined;
  return [...new Set([...names].map((name) => name.toLowerCase()))].sort();
}

/** Fields where the order of the members says nothing, only their weights do. */
const WEIGHTED = new Set(["accept-encoding", "accept-language", "accept-charset"]);
/** Fields that identify somebody: compared as they are. */
const EXACT = new Set(["authorization", "cookie", "proxy-authorization"]);

/** The values of the fields, so that equal ones select the same variant. Absent differs from empty. */
function selectingValues(request: RequestFacts, names: readonly string[]): string {
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

/** RFC 9111, 4.1: fields match when they can be transformed into each other without changing what they mean. */
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

/** `family` changes when the URL is invalidated: older variants can no longer be reached. */
export function variantKey(
  key: string,
  family: string,
  names: readonly string[],
  request: RequestFacts,
): string {
  const values = selectingValues(request, names);
  const shown =
    values.length <= LONGEST_VALUES ? values : `#${createHash("sha256").update(values).digest("base64url")}`;
  return `${key}\n${family}\n${shown}`;
}
