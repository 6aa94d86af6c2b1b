// Which fields of a response are stored, and how those of a 304 change them.
import {
  fieldOf,
  filterFields,
  type HeaderList,
  linesOf,
  membersOf,
  withField,
} from "../message/header-list.ts";

/** Fields of one connection, and of the proxies on it (RFC 9111, 3.1; RFC 9110, 7.6.1). */
const HOP_BY_HOP = [
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authentication-info",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
];

/** Fields that speak of one answer, and would be wrong in the next. */
const OF_ONE_ANSWER = [
  "age",
  "cache-status",
  "content-length",
  "correlation-id",
  "request-id",
  "server-timing",
  "set-cookie",
  "set-cookie2",
  "traceparent",
  "tracestate",
  "x-amzn-trace-id",
  "x-cache",
  "x-correlation-id",
  "x-request-id",
  "x-response-time",
  "x-runtime",
  "x-trace-id",
];

const NEVER_STORED = new Set([...HOP_BY_HOP, ...OF_ONE_ANSWER]);

function connectionFields(headers: HeaderList): Set<string> {
  return new Set(
    linesOf(headers, "connection")
      .flatMap(membersOf)
      .map((name) => name.toLowerCase()),
  );
}

/** `isOuter`: set by somebody further out, who will set it again. */
export function storableHeaders(
  headers: HeaderList,
  isOuter: (name: string, value: string) => boolean = () => false,
): string[] {
  const listed = connectionFields(headers);
  return filterFields(
    headers,
    (name, value) => !NEVER_STORED.has(name) && !listed.has(name) && !isOuter(name, value),
  );
}

/** These describe the bytes that are stored; a 304 has none (RFC 9111, 3.2). */
const OF_STORED_BYTES = new Set(["content-encoding", "content-length", "content-range"]);

/** The Cache-Control of a response that does not state its lifetime. `maxAge` in seconds. */
export function addedControl(headers: HeaderList, maxAge: number, extra: string | undefined): string {
  const own = fieldOf(headers, "cache-control");
  return [own, `max-age=${Math.floor(maxAge)}`, extra].filter(Boolean).join(", ");
}

/** What of it is the handler's; undefined: all. */
export function ownControl(headers: HeaderList, addedMaxAge: number | undefined): string | undefined {
  return addedMaxAge === undefined ? undefined : (fieldOf(headers, "cache-control") ?? "");
}

/** The stored fields as the handler sent them: what the cache has added is not its word. */
export function handlersHeaders(headers: HeaderList, control: string | undefined): HeaderList {
  if (control === undefined) return headers;
  if (control !== "") return withField(headers, "Cache-Control", control);
  return filterFields(headers, (name) => name !== "cache-control");
}

/** The stored fields, those that the 304 has replaced by its own (RFC 9111, 3.2). A cookie is for this client only. */
export function freshenedHeaders(stored: HeaderList, update: HeaderList): string[] {
  const newer = storableHeaders(update);
  const cookies = filterFields(update, (name) => name === "set-cookie" || name === "set-cookie2");
  const replaced = new Set<string>();
  const taken = filterFields(newer, (name) => {
    if (OF_STORED_BYTES.has(name)) return false;
    replaced.add(name);
    return true;
  });
  return [...filterFields(stored, (name) => !replaced.has(name)), ...taken, ...cookies];
}

/** `Surrogate-Key` separates by blanks, `Cache-Tag` by commas. */
export function tagsOfHeaders(headers: HeaderList): string[] {
  const surrogate = fieldOf(headers, "surrogate-key")?.split(/[\s,]+/) ?? [];
  const cacheTag = fieldOf(headers, "cache-tag");
  return [...surrogate, ...(cacheTag === undefined ? [] : membersOf(cacheTag))].filter((tag) => tag !== "");
}
