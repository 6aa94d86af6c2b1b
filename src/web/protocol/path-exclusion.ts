// Excluded paths: prefixes are compared with every spelling of a path that a router might treat as equal.

/** A path percent-encoded more often than this is an attack and always excluded. */
const DEEPEST_ENCODING = 4;

export type PathTest = (target: string) => boolean;

/** Undefined if there are no prefixes. */
export function pathExclusion(prefixes: readonly string[]): PathTest | undefined {
  if (prefixes.length === 0) return undefined;
  const wanted = prefixes.map((prefix) => prefix.toLowerCase());
  const isWanted = (path: string): boolean => wanted.some((prefix) => path.startsWith(prefix));
  return (target) => {
    let path = pathOf(target);
    for (let depth = 0; depth <= DEEPEST_ENCODING; depth++) {
      const lower = path.toLowerCase();
      if (isWanted(lower) || isWanted(normalize(lower))) return true;
      const decoded = decode(path);
      if (decoded === path) return false;
      path = decoded;
    }
    // Encoded too deeply to know: exclude it.
    return true;
  };
}

/** The path of a request target, which may be in absolute form (RFC 9112, 3.2.2). */
export function pathOf(target: string): string {
  const absolute = /^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i.exec(target);
  const rest = absolute === null ? target : target.slice(absolute[0].length);
  const end = rest.search(/[?#]/);
  return end < 0 ? rest : rest.slice(0, end);
}

/** Escapes that are not valid UTF-8 are decoded as latin1. */
function decode(path: string): string {
  return path.replace(/(?:%[0-9a-f]{2})+/gi, (escapes) => {
    try {
      return decodeURIComponent(escapes);
    } catch {
      return Buffer.from(escapes.replaceAll("%", ""), "hex").toString("latin1");
    }
  });
}

/** Resolves repeated slashes, backslashes, `.` and `..`. */
function normalize(path: string): string {
  const parts: string[] = [];
  for (const part of path.replaceAll("\\", "/").split("/")) {
    if (part === "..") parts.pop();
    else if (part !== "." && part !== "") parts.push(part);
  }
  const end = path.endsWith("/") && parts.length > 0 ? "/" : "";
  return `/${parts.join("/")}${end}`;
}
