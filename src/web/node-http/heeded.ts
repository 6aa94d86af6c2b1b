// The request fields that a cache heeds, whatever its options are. Most requests have none of them.

const HEEDED: ReadonlySet<string> = new Set([
  "authorization",
  "cache-control",
  "content-length",
  "cookie",
  "if-match",
  "if-modified-since",
  "if-none-match",
  "if-range",
  "if-unmodified-since",
  "range",
  "transfer-encoding",
  "upgrade",
]);

/** One look at each field that is there costs less than one question for each that might be. */
export function listensToClose(headers: object): boolean {
  for (const name in headers) if (HEEDED.has(name)) return true;
  return false;
}
