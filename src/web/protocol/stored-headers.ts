// Which response fields are stored, and how a 304 updates them.
import type { Exchange } from "../message/exchange.ts";
import {
  fieldOf,
  filterFields,
  type HeaderList,
  linesOf,
  membersOf,
  withField,
} from "../message/header-list.ts";

/** Connection and proxy fields (RFC 9111, 3.1; RFC 9110, 7.6.1). */
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

/** Fields that describe a single response and would be wrong in the next. */
const PER_RESPONSE = [
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

const NEVER_STORED = new Set([...HOP_BY_HOP, ...PER_RESPONSE]);

function connectionFields(headers: HeaderList): Set<string> {
  return new Set(
    linesOf(headers, "connection")
      .flatMap(membersOf)
      .map((name) => name.toLowerCase()),
  );
}

/** Tells what outer middleware set, which it sets again for every response. */
export type Origins = Pick<Exchange, "isOuter" | "isLate">;

/**
 * A field that outer middleware had set, and to which the handler added a line, is stored with all of its lines: on a hit it
 * replaces the one of outer middleware. Lines that outer middleware added after the handler are not stored: it adds them to
 * the hit.
 */
export function storableHeaders(headers: HeaderList, origins: Origins = {}): string[] {
  const listed = connectionFields(headers);
  const own = new Set<string>();
  const storable = filterFields(headers, (name, value) => {
    if (NEVER_STORED.has(name) || listed.has(name) || origins.isLate?.(name, value)) return false;
    if (!origins.isOuter?.(name, value)) own.add(name);
    return true;
  });
  return filterFields(storable, (name) => own.has(name));
}

/** These describe the stored content, which a 304 does not change (RFC 9111, 3.2). */
const CONTENT_FIELDS = new Set(["content-encoding", "content-length", "content-range"]);

/** The Cache-Control for a response that states no lifetime. `maxAge` in seconds. */
export function addedControl(headers: HeaderList, maxAge: number, extra: string | undefined): string {
  const own = fieldOf(headers, "cache-control");
  return [own, `max-age=${Math.floor(maxAge)}`, extra].filter(Boolean).join(", ");
}

/** The fields with these names in Vary. */
export function withVary(headers: HeaderList, names: readonly string[]): HeaderList {
  const own = membersOf(fieldOf(headers, "vary") ?? "");
  const known = new Set(own.map((name) => name.toLowerCase()));
  const missing = names.filter((name) => !known.has(name.toLowerCase()));
  return missing.length === 0 ? headers : withField(headers, "Vary", [...own, ...missing].join(", "));
}

/** The handler's own Cache-Control if max-age was added to it, else undefined. */
export function ownControl(headers: HeaderList, addedMaxAge: number | undefined): string | undefined {
  return addedMaxAge === undefined ? undefined : (fieldOf(headers, "cache-control") ?? "");
}

/** The stored fields as the handler sent them, without the Cache-Control that the cache added. */
export function handlersHeaders(headers: HeaderList, control: string | undefined): HeaderList {
  if (control === undefined) return headers;
  if (control !== "") return withField(headers, "Cache-Control", control);
  return filterFields(headers, (name) => name !== "cache-control");
}

/** The stored fields updated from a 304 (RFC 9111, 3.2), plus its cookies, which are for this client only. */
export function freshenedHeaders(stored: HeaderList, update: HeaderList, origins: Origins = {}): string[] {
  const newer = storableHeaders(update, origins);
  const cookies = filterFields(update, (name) => name === "set-cookie" || name === "set-cookie2");
  const replaced = new Set<string>();
  const taken = filterFields(newer, (name) => {
    if (CONTENT_FIELDS.has(name)) return false;
    replaced.add(name);
    return true;
  });
  return [...filterFields(stored, (name) => !replaced.has(name)), ...taken, ...cookies];
}

/** `Surrogate-Key` is separated by spaces, `Cache-Tag` by commas. */
export function tagsOfHeaders(headers: HeaderList): string[] {
  const surrogate = fieldOf(headers, "surrogate-key")?.split(/[\s,]+/) ?? [];
  const cacheTag = fieldOf(headers, "cache-tag");
  return [...surrogate, ...(cacheTag === undefined ? [] : membersOf(cacheTag))].filter((tag) => tag !== "");
}
