// Which paths are left alone: prefixes, compared with every spelling of the path that a router might take for the same.

/** A path encoded more often than this is nobody's honest spelling. */
const DEEPEST_ENCODING = 4;

export type PathTest = (target: string) => boolean;

/** `prefixes` are as the options have them. */
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
    // Safe side: it may be anything.
    return true;
  };
}

/** The path of a request target; an absolute one (RFC 9112, 3.2.2) begins with scheme and authority. */
function pathOf(target: string): string {
  const absolute = /^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i.exec(target);
  const rest = absolute === null ? target : target.slice(absolute[0].length);
  const end = rest.search(/[?#]/);
  return end < 0 ? rest : rest.slice(0, end);
}

/** Escapes that are no UTF-8 stay as they are. */
function decode(path: string): string {
  return path.replace(/(?:%[0-9a-f]{2})+/gi, (escapes) => {
    try {
      return decodeURIComponent(escapes);
    } catch {
      return Buffer.from(escapes.replaceAll("%", ""), "hex").toString("latin1");
    }
  });
}

/** Without repeated slashes, backslashes, `.` and `..`. */
function normalize(path: string): string {
  const parts: string[] = [];
  for (const part of path.replaceAll("\\", "/").split("/")) {
    if (part === "..") parts.pop();
    else if (part !== "." && part !== "") parts.push(part);
  }
  const end = path.endsWith("/") && parts.length > 0 ? "/" : "";
  return `/${parts.join("/")}${end}`;
}
